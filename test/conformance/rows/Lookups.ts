/** Lookups, each a question with an answer. */
import { choice, domain, flag, integer, type Row, row, text } from "../Row.ts"

const DIGITS = "45717360123"

const bin = text({
  required: true,
  minLength: 6,
  maxLength: 8,
  sample: "45717360",
  ofLength: (length) => DIGITS.slice(0, length),
  malformed: ["abcdef", "45717x", "4571 736", "٤٥٧١٧٣"],
  unknown: "000000"
})

export const lookups: ReadonlyArray<Row> = [
  row("GET", "/bin/{bin}", "bin.lookup", { path: { bin }, price: 0.5 }),
  row("GET", "/dns/{domain}", "dns.resolve", {
    path: { domain: domain({ required: true, maxLength: 253, malformed: ["two words", "192.0.2.1", "a..example.com"] }) },
    query: { type: choice(["ANY", "A", "AAAA", "MX", "TXT", "NS", "CNAME", "SOA"], { required: true }) },
    price: 0.5
  }),
  row("GET", "/content/prompts/topics", "topics.list", { query: { q: text({ maxLength: 100, sample: "travel" }) }, price: 0.1 }),
  row("POST", "/grammar/check", "grammar.check", {
    body: {
      text: text({ required: true, maxLength: 50_000 }),
      language: text({ maxLength: 20, sample: "en-GB", ofLength: null, malformed: ["xx-YY"] })
    },
    price: 1
  }),
  row("GET", "/ecommerce/storeplatform/catalog", "storeCatalog.read", {
    query: {
      // No name has more than 253 characters, so the longest is of no domain
      domain: domain({ required: true, maxLength: 255, ofLength: null, malformed: ["two words", "192.0.2.1", "https://example.com"] }),
      limit: integer({ minimum: 1, maximum: 250 }),
      page: integer({ minimum: 1, maximum: 10_000 })
    },
    price: 1.5
  }),
  row("GET", "/local/mapsearch/leads", "leads.search", {
    query: {
      query: text({ required: true, minLength: 2, maxLength: 120, sample: "bakeries in Utrecht" }),
      hl: text({ sample: "en", ofLength: null, malformed: ["e", "english language", "en_GB"] }),
      limit: integer({ minimum: 1, maximum: 20 }),
      with_phone: flag(),
      with_website: flag()
    },
    price: 2
  })
]
