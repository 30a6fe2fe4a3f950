/** What the log gets of an offer. */
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { offerOf, productOf, shopOf } from "../../src/prices/Offer.ts"

const url = "https://shop.example.com/products/mug"

describe("an offer", () => {
  test("has a title of one line, at most 500 characters long, whatever a shop calls its product", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 700 }), fc.string({ unit: "binary", maxLength: 700 }), (title, variant) => {
        const offer = offerOf({ title, url, variant })
        for (const text of [offer?.title, offer?.variant]) {
          if (text === undefined) continue
          expect(text).not.toMatch(/\p{Cc}|\p{Cs}/u)
          expect(text.trim()).toBe(text)
          expect([...text].length).toBeGreaterThan(0)
          expect([...text].length).toBeLessThanOrEqual(500)
        }
        // What is clean already is not changed
        if (offer !== undefined) expect(offerOf(offer)).toEqual(offer)
      })
    )
  })

  test.each([
    "",
    "shop.example.com/products/mug",
    "ftp://shop.example.com/mug",
    "javascript:alert(1)",
    "https://user:password@shop.example.com/mug",
    `https://shop.example.com/${"a".repeat(2048)}`
  ])("is none with the address %j", (wrong) => expect(offerOf({ title: "Mug", url: wrong })).toBeUndefined())

  test.each(["", " ", "\n\u0000"])("is none with the title %j", (title) => expect(offerOf({ title, url })).toBeUndefined())

  test("is of the shop and the product of its page, however the address is written", () => {
    const ways = [url, "http://www.shop.example.com/products/mug/?utm_source=mail#reviews", "https://SHOP.example.com/products/mug"]
    expect(new Set(ways.map((way) => productOf({ title: "Mug", url: way }))).size).toBe(1)
    expect(new Set(ways.map(shopOf))).toEqual(new Set(["shop.example.com"]))
    expect(productOf({ title: "Mug", url: `${url}s` })).not.toBe(productOf({ title: "Mug", url }))
  })
})
