/** Coupons and products. */
import { choice, domain, flag, integer, number, type Row, row, strings, text, url } from "../Row.ts"

const MAX_PRICE = 1_000_000_000_000

const price = number({ minimum: 0, maximum: MAX_PRICE })
/** What is no address of the web. */
const malformed = ["shop.example.com", "ftp://shop.example.com/p", "https://a:b@shop.example.com"]
const identifier = text({ maxLength: 64, sample: "B00EXAMPLE" })

export const products: ReadonlyArray<Row> = [
  row("GET", "/coupons", "coupons.search", {
    query: {
      url: url(),
      price,
      quantity: integer({ minimum: 1, maximum: 1000 }),
      product_name: text({ maxLength: 500 }),
      shop_username: text({ maxLength: 255 }),
      order: strings({ maxItems: 30 }),
      domain: domain({ maxLength: 255 }),
      store: text({ maxLength: 255 })
    },
    price: 0.5
  }),
  row("POST", "/coupons/request-store", "coupons.requestStore", { notShown: ["body", "answer"] }),
  row("POST", "/coupons/submit", "coupons.submit", { notShown: ["body", "answer"] }),
  row("POST", "/products/price-alerts", "priceAlerts.register", {
    header: { "Idempotency-Key": text({ sample: "alert-1", ofLength: null }) },
    body: {
      url: url({ required: true }),
      name: text({ required: true, maxLength: 500 }),
      price: number({ required: true, maximum: MAX_PRICE }),
      target_price: number({ required: true }),
      consent: flag({ required: true, only: true })
    },
    price: 1,
    status: 202
  }),
  row("POST", "/products/price-compare", "prices.compare", {
    body: {
      name: text({ required: true, minLength: 3, maxLength: 500 }),
      price,
      limit: integer({ minimum: 1, maximum: 20 })
    },
    price: 1
  }),
  row("GET", "/products/price-history", "prices.history", {
    query: {
      price,
      url: url({ malformed }),
      asin: identifier,
      timeframe: choice([30, 60, 90, 120]),
      variant_id: identifier,
      sku: identifier,
      store_id: identifier
    },
    // Something has to name a product
    beside: { sku: "MUG-1" },
    price: 0.5
  }),
  row("GET", "/products/selectors", "selectors.find", {
    query: {
      url: url({ required: true, malformed }),
      selector_name: choice(["getPriceCurrent", "getProductName", "getProductThumbnail", "getProductBriefing"], { required: true })
    },
    price: 0
  })
]
