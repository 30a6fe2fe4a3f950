/** `StoreCatalogs` by `GET https://{domain}/products.json`, which Shopify's shops answer to everybody. The domain is a caller's. */
import { NotFound, StoreCatalog } from "@millrace/core"
import { Effect, Layer, Schema } from "effect"
import type { Reply } from "../shared/ByteService.ts"
import type * as PinnedHost from "../shared/PinnedHost.ts"
import * as PublicReader from "../shared/PublicReader.ts"

export interface Options extends PublicReader.ReadLimits, PinnedHost.Options {
  /** Where a domain's shop is: `https://{domain}` by default. */
  readonly originOf?: (domain: string) => string
  /** Allowed ports; 80 and 443 by default. */
  readonly ports?: ReadonlyArray<number>
}

/** The fields that are used. */
const ProductsReply = Schema.Struct({
  products: Schema.Array(Schema.Struct({ ...StoreCatalog.Product.fields, images: Schema.Array(Schema.Struct({ src: Schema.String })) }))
})

/** A page with 250 products and their descriptions may have some megabytes. */
const BYTES = 16 * 1024 * 1024

const BEGINNING = /^\s*\{\s*"products"\s*:\s*\[/u

/** The shop was closed, or never paid for. */
const CLOSED: ReadonlySet<number> = new Set([402, 423])

/** Other sites answer with a page of theirs, and locked shops with the one that asks for a password. */
const isNone = ({ bytes, status }: Reply): boolean =>
  CLOSED.has(status) || (status === 200 && !BEGINNING.test(new TextDecoder().decode(bytes.subarray(0, 256))))

const secure = (domain: string): string => `https://${domain}`

const noStore = new NotFound({ resource: "store" })

/** A reply may have 16 MiB and 10 seconds by default. */
export const layer = ({ originOf = secure, ...limits }: Options = {}): Layer.Layer<StoreCatalog.StoreCatalogs> =>
  Layer.effect(
    StoreCatalog.StoreCatalogs,
    Effect.gen(function* () {
      const { json } = yield* PublicReader.make({ byteLimit: BYTES, cacheLimit: 2 * BYTES, ...limits, upstream: "caller's shop" })
      const read = json(ProductsReply, "store", (reply) => (isNone(reply) ? noStore : undefined))
      return {
        products: Effect.fn("ProductsJsonCatalogs.products")(function* ({ domain, limit, page }) {
          const url = new URL("/products.json", originOf(domain))
          url.search = new URLSearchParams({ limit: String(limit), page: String(page) }).toString()
          const { cache, data } = yield* read({ url })
          return { cache, data: data.products.map(({ images, ...product }) => ({ ...product, images: images.map(({ src }) => src) })) }
        })
      }
    })
  )
