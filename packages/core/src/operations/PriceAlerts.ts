/** Registers an alert: a mail once the price of a product is at a target or below. */
import { Effect, Schema } from "effect"
import { PriceAlerts, type Registered } from "../alerts/PriceAlerts.ts"
import { PriceObservations } from "../prices/PriceObservations.ts"
import * as PriceSeries from "../prices/PriceSeries.ts"
import { identityOf } from "../prices/ProductIdentity.ts"
import * as Operation from "../work/Operation.ts"
import { AddressNotVerified, InvalidInput, TooManySubmissions, UpstreamNotConfigured, UpstreamUnavailable } from "../work/OperationError.ts"
import { checkWebAddress } from "./WebAddress.ts"

/** The highest price that a caller may name. */
const MAX_PRICE = 1_000_000_000_000

/** Seconds after which an account that has as many alerts as it may can ask again: it ends one by its link. */
const RETRY = 3_600

const UPSTREAM = "price alerts"

const text = (maximum: number) => Schema.String.check(Schema.isMaxCodePoints(maximum))

const Alert = Schema.Struct({
  alert_id: Schema.String,
  /** The alert is registered. It does not say that a mail arrived, or ever will. */
  status: Schema.Literal("accepted"),
  /** The same for each name of the product's page. */
  product_base_id: Schema.String,
  /** In the shop's currency. */
  target_price: Schema.Finite,
  /** The newest price that this service read by itself; null if it read none yet. */
  current_price: Schema.NullOr(Schema.Finite),
  /** Opened in a browser, a page with a button that ends the alert; called with `POST`, it ends it at once. Who has it can end it. */
  unsubscribe_url: Schema.String
})

interface Input {
  readonly url: string
  readonly price: number
  readonly target_price: number
}

/** An exact decimal, and `InvalidInput` for one with more digits than are kept. */
const exactly = (field: string, value: number): Effect.Effect<string, InvalidInput> => {
  const price = PriceSeries.priceOf(value)
  return price === undefined
    ? Effect.fail(new InvalidInput({ field, message: "must be a price of at most 15 digits before the point and six after it" }))
    : Effect.succeed(price)
}

/** What a call asks for, exactly. */
const wishOf = Effect.fnUntraced(function* ({ price, target_price, url }: Input) {
  yield* checkWebAddress("url", url)
  const identity = identityOf({ url })
  if (identity === undefined) return yield* new InvalidInput({ field: "url", message: "names no product" })
  return { url, identity, claimed: yield* exactly("price", price), target: yield* exactly("target_price", target_price) }
})

const failed = (error: { readonly _tag: string; readonly limit?: number }) => {
  if (error._tag === "MailNotConfigured") return new UpstreamNotConfigured({ upstream: UPSTREAM })
  if (error._tag === "AddressNotVerified") return new AddressNotVerified()
  if (error._tag === "TooManyAlerts") return new TooManySubmissions({ limit: error.limit ?? 0, retryAfter: RETRY })
  return new UpstreamUnavailable({ upstream: UPSTREAM, reason: error._tag, isolated: true })
}

const answerOf = ({ alertId, current, productId, target, unsubscribe }: Registered): { readonly data: typeof Alert.Type } => ({
  data: {
    alert_id: `alert_${alertId}`,
    status: "accepted",
    product_base_id: productId,
    target_price: Number(target),
    current_price: current === null ? null : Number(current),
    unsubscribe_url: unsubscribe
  }
})

export const register = Operation.make("priceAlerts.register", {
  summary: "Be told by mail when a price falls",
  description:
    "Once a price that this service read is at `target_price` or below, one mail goes to the verified address of the account; the next one only " +
    "after the price was above the target again. A price that is at the target already is told at once. An account has one alert for each " +
    "product: another call for it replaces the target. `consent` must be true: the owner of the address wants this mail. `name` is what the mail " +
    "calls the product, and `price` what it costs as you see it, which is noted in your own history only: a claimed price never causes a mail.",
  price: 1,
  local: true,
  route: {
    method: "POST",
    path: "/products/price-alerts",
    status: 202,
    body: {
      /** The page of the product. */
      url: text(2048),
      /** As the mail names it. */
      name: text(500),
      /** What it costs now, as the caller sees it. */
      price: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: MAX_PRICE })),
      /** In the shop's currency. */
      target_price: Schema.Finite,
      /** The owner of the account's address wants this mail. */
      consent: Schema.Literal(true)
    }
  },
  success: Alert,
  secret: ["unsubscribe_url"],
  configured: Effect.mapError(
    PriceAlerts.use(({ configured }) => configured),
    () => new UpstreamNotConfigured({ upstream: UPSTREAM })
  ),
  check: Effect.fnUntraced(function* (input, { accountId }) {
    const { identity } = yield* wishOf(input)
    yield* Effect.mapError(
      PriceAlerts.use(({ admit }) => admit(accountId, identity)),
      failed
    )
  }),
  run: Effect.fnUntraced(function* (input, { accountId, requestId, reservationId }) {
    const { claimed, ...wish } = yield* wishOf(input)
    yield* Effect.mapError(
      PriceObservations.use(({ claim }) => claim(accountId, wish.identity, claimed)),
      failed
    )
    const { register } = yield* PriceAlerts
    const registering = register({ ...wish, accountId, name: input.name, reservationId }, { $correlationId: requestId })
    return answerOf(yield* Effect.mapError(registering, failed))
  }),
  recover: Effect.fnUntraced(function* (reservationId) {
    const found = yield* Effect.mapError(
      PriceAlerts.use(({ recover }) => recover(reservationId)),
      failed
    )
    return found === undefined ? undefined : answerOf(found)
  }),
  example: {
    input: { url: "https://shop.example.com/products/mug", name: "Blue mug", price: 24.95, target_price: 19.9, consent: true },
    data: {
      alert_id: "alert_7vqYy3mS2fJ8rT0oQx5bNwZ1cKdLhGpEuRiAtVeXjMs",
      status: "accepted",
      product_base_id: "wT3kV9pZ0aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456A",
      target_price: 19.9,
      current_price: 24.95,
      unsubscribe_url:
        "https://api.example.com/price-alerts/end?token=7vqYy3mS2fJ8rT0oQx5bNwZ1cKdLhGpEuRiAtVeXjMs.hB5nW8sQ2xY7zC4vM1kJ6tR9pL3fD0gA5eU8iO2wN7q"
    }
  }
})
