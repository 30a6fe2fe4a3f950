/** Coupons and products. */
import { choice, domain, flag, integer, number, type Row, row, strings, text, url } from "../Row.ts"

const MAX_PRICE = 1_000_000_000_000

const price = number({ minimum: 0, maximum: MAX_PRICE })
/** What is no address of the web. */
const malformed = ["shop.example.com", "ftp://shop.example.com/p", "https://a:b@shop.example.com"]
const identifier = text({ maxLength: 64, sample: "B00EXAMPLE" })

const NO_DOMAINS = ["", "shop", "192.0.2.1", "a b.example.com", "https://example.com", "example..com"]
const NO_URLS = ["", "shop.example.com", "ftp://shop.example.com/", "https://192.0.2.1/", "javascript:alert(1)"]

export const products: ReadonlyArray<Row> = [
  row("GET", "/coupons", "coupons.search", {
    query: {
      url: url({ malformed: NO_URLS }),
      price,
      quantity: integer({ minimum: 1, maximum: 1000 }),
      product_name: text({ maxLength: 500 }),
      shop_username: text({ maxLength: 255 }),
      order: strings({ maxItems: 30 }),
      domain: domain({ maxLength: 255, malformed: NO_DOMAINS }),
      store: text({ maxLength: 255 })
    },
    price: 0.5
  }),
  row("POST", "/coupons/request-store", "coupons.requestStore", {
    body: { domain: domain({ required: true, maxLength: 255, malformed: NO_DOMAINS }) },
    notShown: ["body", "answer"]
  }),
  row("POST", "/coupons/submit", "coupons.submit", {
    body: {
      domain: domain({ required: true, maxLength: 255, malformed: NO_DOMAINS }),
      code: text({
        required: true,
        minLength: 1,
        maxLength: 64,
        sample: "SAVE20",
        ofLength: (length) => "A".repeat(length),
        malformed: ["", " ", "A\nB", "A\ud800"]
      }),
      description: text({ maxLength: 500, malformed: ["two\nlines"] }),
      discount_text: text({ maxLength: 100, sample: "20% off" }),
      expires_at: text({
        sample: "2099-01-01T00:00:00Z",
        ofLength: null,
        malformed: ["", "tomorrow", "2099-01-01", "2099-02-30T00:00:00Z", "2020-01-01T00:00:00Z"]
      }),
      shop_username: text({ maxLength: 255, sample: "best-seller" }),
      minimum_order: price,
      worked: flag(),
      discount: integer({ minimum: 0, maximum: 100 })
    },
    notShown: ["body", "answer"]
  }),
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
      name: text({ required: true, minLength: 3, maxLength: 500, sample: "Mug", malformed: ["!?!", "   "] }),
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
