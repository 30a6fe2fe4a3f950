import { describe, expect, test } from "vitest"
import { identityOf } from "../../src/prices/ProductIdentity.ts"

const URL = "https://shop.example.com/p/7"

describe("the identity of a product", () => {
  test.each([
    "http://shop.example.com/p/7",
    "https://www.shop.example.com/p/7/",
    "https://SHOP.example.com:443/p/7#reviews",
    "https://shop.example.com/p/../p/7?utm_source=mail&gclid=1&fbclid=2"
  ])("is the same at %s", (url) => expect(identityOf({ url })).toBe(identityOf({ url: URL })))

  test.each(["https://shop.example.com/p/8", "https://shop.example.com/P/7", "https://other.example.com/p/7", `${URL}?variant=2`])(
    "is another one at %s",
    (url) => expect(identityOf({ url })).not.toBe(identityOf({ url: URL }))
  )

  test("does not depend on the order of parameters", () =>
    expect(identityOf({ url: `${URL}?a=1&b=2` })).toBe(identityOf({ url: `${URL}?b=2&a=1` })))

  test("is the most specific name", () => {
    const all = { url: URL, asin: "B00EXAMPLE", sku: "MUG-1", variant_id: "8", store_id: "example.com" }
    expect(identityOf(all)).toBe(identityOf({ asin: "b00example" }))
    expect(identityOf({ ...all, asin: undefined })).toBe(identityOf({ variant_id: "8", store_id: "Example.com" }))
    expect(identityOf({ sku: "MUG-1", url: URL })).toBe(identityOf({ sku: "MUG-1", store_id: "example.com" }))
    expect(identityOf({ variant_id: "8", url: "https://www.example.com/" })).toBe(identityOf({ variant_id: "8", store_id: "example.com" }))
  })

  test("of one kind is never that of another, and no two names run together", () => {
    const identities = [
      identityOf({ asin: "1" }),
      identityOf({ sku: "1" }),
      identityOf({ sku: "1", store_id: "1" }),
      identityOf({ variant_id: "1", store_id: "1" }),
      identityOf({ variant_id: "1,1", store_id: "1" }),
      identityOf({ variant_id: "1", store_id: "1,1" }),
      identityOf({ url: "https://1.example" })
    ]
    expect(new Set(identities).size).toBe(identities.length)
  })

  test("is missing without a name of a product", () => {
    for (const names of [{}, { store_id: "example.com" }, { variant_id: "8" }]) expect(identityOf(names)).toBeUndefined()
  })
})
