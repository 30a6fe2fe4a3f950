/** `coupons`: what accounts submit: list it, accept or reject it, and describe shops. */
import { Coupons } from "@millrace/core"
import { Effect, Layer, Option } from "effect"
import { Argument, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Acts from "../administration/Coupons.ts"

const ID = "cpn_tqfJIrt3x6KaigDbAE8DE8Cz6A"

const id = Argument.String("coupon").pipe(Argument.withDescription("Id of the coupon: cpn_..."))
const limit = Flag.Int("limit").pipe(Flag.withDescription("At most so many (default: 100)"), Flag.withDefault(100))

const layer = (store: string) => Coupons.layer().pipe(Layer.provideMerge(Administration.layer(store)))
const provided = Effect.provide(Coupons.layer())

const list = Administration.query(
  "list",
  "List the coupons that wait for a decision, those that others confirm first",
  { "millrace coupons list": "List what accounts submitted" },
  layer,
  { limit },
  ({ limit }) => Acts.pending(limit)
)

const requests = Administration.query(
  "requests",
  "List the shops that accounts asked for and that have no coupons, the most wanted first",
  { "millrace coupons requests": "List what is wanted" },
  layer,
  { limit },
  ({ limit }) => Acts.requests(limit)
)

const accept = Administration.act(
  "coupons accept",
  "Accept a coupon: searches find it at once",
  { [`millrace coupons accept ${ID}`]: "Show it to everybody" },
  { id },
  ({ id }, metadata) => provided(Acts.accept(id, metadata))
)

const reject = Administration.act(
  "coupons reject",
  "Reject a coupon, also one that was accepted: no search finds it",
  { [`millrace coupons reject ${ID} --why "It is no code of this shop"`]: "Record why" },
  {
    id,
    why: Flag.String("why").pipe(Flag.withDescription("Why; recorded in the coupon"), Flag.withDefault("The operator rejected it"))
  },
  ({ id, why }, metadata) => provided(Acts.reject(id, why, metadata))
)

const CASHBACK = /^(?<from>\d{1,3}(?:\.\d{1,2})?)(?:-(?<to>\d{1,3}(?:\.\d{1,2})?))?$/u

/** `2` or `1-2.5`: percent. */
const cashbackOf = (text: string) => {
  const { from, to = from } = CASHBACK.exec(text)?.groups ?? {}
  const [minPercent, maxPercent] = [Number(from), Number(to)]
  return minPercent <= maxPercent && maxPercent <= 100 ? Option.some({ minPercent, maxPercent }) : Option.none()
}

const isHttps = (text: string): boolean => URL.parse(text)?.protocol === "https:" && text.length <= 2_048
const isName = (text: string): boolean => /^[^\p{Cc}\p{Cs}]{1,100}$/u.test(text)

const shop = Administration.act(
  "coupons shop",
  "Say what a shop is called, and what it gives. What is left out is said no more",
  { 'millrace coupons shop shop.example.com --name "The Example Shop" --cashback 1-2.5': "Name a shop, which searches by name then find" },
  {
    domain: Argument.String("domain").pipe(Argument.withDescription("Domain of the shop")),
    name: Flag.String("name").pipe(
      Flag.withDescription("What it is called"),
      Flag.filter(isName, () => "a name of 1 to 100 characters"),
      Flag.optional
    ),
    affiliateUrl: Flag.String("affiliate-url").pipe(
      Flag.withDescription("The address that answers lead to"),
      Flag.filter(isHttps, () => "an address that begins with https://"),
      Flag.optional
    ),
    cashback: Flag.String("cashback").pipe(
      Flag.withDescription("Percent that buyers get back, or from and to"),
      Flag.filterMap(cashbackOf, () => "percent such as 2 or 1-2.5"),
      Flag.optional
    )
  },
  ({ affiliateUrl, cashback, domain, name }, metadata) =>
    provided(
      Acts.describe(
        domain,
        {
          name: Option.getOrNull(name),
          affiliateUrl: Option.getOrNull(affiliateUrl),
          cashback: Option.getOrNull(cashback)
        },
        metadata
      )
    )
)

export const coupons = Administration.group("coupons", "List, accept and reject coupons that accounts submit, and describe shops", [
  list,
  requests,
  accept,
  reject,
  shop
])
