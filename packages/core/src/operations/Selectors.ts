/** CSS selectors that find the price, the name, the picture and the description of a product in the pages of a shop. */
import { Context, Effect, Schema } from "effect"
import * as Operation from "../work/Operation.ts"
import { checkWebAddress } from "./WebAddress.ts"

export const NAMES = ["getPriceCurrent", "getProductName", "getProductThumbnail", "getProductBriefing"] as const
export const Name = Schema.Literals(NAMES)
export type Name = typeof Name.Type

const Selectors = Schema.Struct({
  selector_name: Name,
  /** CSS selectors, the best first. Empty if the shop is not known. */
  selectors: Schema.Array(Schema.String),
  /** Whether the shop is known. */
  available: Schema.Boolean
})

export class SelectorLibrary extends Context.Service<
  SelectorLibrary,
  {
    /** CSS selectors for the pages of the shop at the host of an http or https URL, the best first; undefined for an unknown shop. */
    readonly find: (url: string, name: Name) => Effect.Effect<ReadonlyArray<string> | undefined>
  }
>()("@millrace/core/operations/Selectors/SelectorLibrary") {}

export const find = Operation.make("selectors.find", {
  summary: "Find the CSS selectors of a shop's product pages",
  description:
    "The shop is known by the domain of the URL, which is not read. The selectors are CSS alone, and are to be tried in their order. `available` is " +
    "false, and the list empty, for a shop that is not known: keep your own selectors there.",
  price: 0,
  local: true,
  route: {
    method: "GET",
    path: "/products/selectors",
    query: { url: Schema.String.check(Schema.isMaxCodePoints(2048)), selector_name: Name }
  },
  success: Selectors,
  check: ({ url }) => checkWebAddress("url", url),
  run: Effect.fnUntraced(function* ({ selector_name, url }) {
    const selectors = yield* SelectorLibrary.use((library) => library.find(url, selector_name))
    return { data: { selector_name, selectors: selectors ?? [], available: selectors !== undefined } }
  }),
  example: {
    input: { url: "https://www.target.com/p/mug/-/A-7", selector_name: "getProductName" },
    data: {
      selector_name: "getProductName",
      selectors: ['[data-test="product-title"]', 'meta[property="og:title"]'],
      available: true
    }
  }
})
