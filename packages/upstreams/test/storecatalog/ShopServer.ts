/** A shop that publishes its catalog at `/products.json`, in pages, with what else the platform says of a product. */
import { ProductsJsonCatalogs } from "@millrace/upstreams"
import type { Answer, Received } from "../shared/LocalService.ts"

const variant = (id: number, price: string, more: object = {}) => ({
  ...{
    id,
    title: `Variant ${id}`,
    option1: "Blue",
    option2: null,
    option3: null,
    sku: `SKU-${id}`,
    requires_shipping: true,
    taxable: true
  },
  ...{ featured_image: null, available: true, price, grams: 100, compare_at_price: null, position: 1, product_id: 1 },
  ...{ created_at: "2026-01-21T12:00:00+01:00", updated_at: "2026-01-21T12:00:00+01:00", ...more }
})

const product = (id: number, published_at: string, variants: ReadonlyArray<object>, more: object = {}) => ({
  ...{ id, title: `Product ${id}`, handle: `product-${id}`, body_html: "<p>A <b>thing</b></p>", published_at, vendor: "Potter" },
  ...{ created_at: "2026-01-20T12:00:00+01:00", updated_at: "2026-01-23T12:00:00+01:00", product_type: "Kitchen", tags: ["a", "b"] },
  ...{
    variants,
    images: [{ id: 1, position: 1, product_id: id, variant_ids: [], src: `https://cdn.example.com/${id}.jpg`, width: 1, height: 1 }]
  },
  ...{ options: [{ name: "Colour", position: 1, values: ["Blue"] }], ...more }
})

/** The newest by time is not the newest by text: the zones differ. */
export const products = [
  product(1, "2026-01-22T12:00:00+01:00", [variant(11, "19.90"), variant(12, "24.95", { sku: null, available: false })]),
  product(2, "2026-01-22T11:30:00+00:00", [variant(21, "5.00"), variant(22, "4.50")]),
  product(3, "2026-01-01T00:00:00+00:00", [variant(31, "100.00")], { vendor: "", product_type: "", images: [] })
]

export const answer =
  (before: (request: Received) => Answer | undefined = () => undefined): Answer =>
  (response, request) => {
    const other = before(request)
    if (other !== undefined) return other(response, request)
    const { pathname, searchParams } = new URL(request.path, "http://shop")
    if (pathname !== "/products.json") return void response.writeHead(404, { "content-type": "text/html" }).end("<html></html>")
    const [limit, page] = [Number(searchParams.get("limit") ?? 30), Number(searchParams.get("page") ?? 1)]
    response
      .writeHead(200, { "content-type": "application/json; charset=utf-8", etag: `"${limit}-${page}"`, "cache-control": "max-age=10" })
      .end(JSON.stringify({ products: products.slice((page - 1) * limit, page * limit) }))
  }

const HERE = "127.0.0.1"

/** Reads the shops of these domains at the server; all other names lead nowhere. */
export const catalogsAt = ({ port }: URL, ...domains: ReadonlyArray<string>) =>
  ProductsJsonCatalogs.layer({
    retries: 0,
    originOf: (domain) => `http://${domain}:${port}`,
    ports: [Number(port)],
    isAllowed: (address) => address === HERE,
    resolve: (name) =>
      domains.includes(name)
        ? Promise.resolve([{ address: HERE, family: 4 }])
        : Promise.reject(Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }))
  })
