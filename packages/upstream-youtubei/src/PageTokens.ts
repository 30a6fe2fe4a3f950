/**
 * Tokens of pages. The site's pages have sizes of their own, so a token tells a place between them: the site's continuation, and how many of
 * its items the pages before have shown. It holds all that is needed, so this host keeps nothing between pages.
 */
import { createHash } from "node:crypto"
import { InvalidInput } from "@millrace/core"
import { Effect, Schema } from "effect"

export interface Place {
  /** Of the site; the first of its pages without one. */
  readonly continuation: string | undefined
  readonly skip: number
}

const START: Place = { continuation: undefined, skip: 0 }

/** The mark of the list, the site's continuation, and the items to skip. */
const Token = Schema.fromJsonString(
  Schema.Tuple([Schema.String, Schema.NullOr(Schema.String), Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000 }))])
)
const decode = Schema.decodeUnknownOption(Token)

/** The list that a token belongs to: its kind, and what was asked for. */
export type List = ReadonlyArray<string>

const markOf = (list: List): string => createHash("sha256").update(JSON.stringify(list)).digest("base64url").slice(0, 10)

export const unknownPage = () =>
  new InvalidInput({ field: "page_token", message: "is of no page here: give a next_page_token of the same call" })

/** `InvalidInput` if the token is malformed, or of another list. */
export const placeOf = (list: List, token: string | undefined): Effect.Effect<Place, InvalidInput> => {
  if (token === undefined) return Effect.succeed(START)
  const decoded = decode(Buffer.from(token, "base64url").toString("utf8"))
  if (decoded._tag === "None" || decoded.value[0] !== markOf(list)) return Effect.fail(unknownPage())
  const [, continuation, skip] = decoded.value
  return Effect.succeed({ continuation: continuation ?? undefined, skip })
}

const tokenOf = (list: List, { continuation = null, skip }: { readonly continuation?: string | null | undefined; readonly skip: number }) =>
  Buffer.from(JSON.stringify([markOf(list), continuation, skip])).toString("base64url")

/** One page of the site. */
export interface Slice<A> {
  readonly items: ReadonlyArray<A>
  readonly continuation: string | undefined
}

export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly next_page_token: string | null
}

/** The most pages of the site for one of ours. A list with many items that are left out may then give fewer. */
const SITE_PAGES = 5

/** Reads so many items from a place on, over as many pages of the site as it takes. */
export const read = <A, E>(
  list: List,
  from: Place,
  perPage: number,
  load: (continuation: string | undefined) => Effect.Effect<Slice<A>, E>
): Effect.Effect<Page<A>, E> =>
  Effect.gen(function* () {
    const items: Array<A> = []
    let { continuation, skip } = from
    for (let pages = 0; pages < SITE_PAGES && items.length < perPage; pages++) {
      const slice = yield* load(continuation)
      const rest = slice.items.slice(skip)
      const room = perPage - items.length
      items.push(...rest.slice(0, room))
      if (rest.length > room) return { items, next_page_token: tokenOf(list, { continuation, skip: skip + room }) }
      if (slice.continuation === undefined) return { items, next_page_token: null }
      continuation = slice.continuation
      skip = 0
    }
    return { items, next_page_token: tokenOf(list, { continuation, skip }) }
  })
