import { Selectors } from "@millrace/core"
import { BundledSelectorLibrary } from "@millrace/upstreams"
import { parse } from "css-what"
import { Effect } from "effect"
import { describe, expect, test } from "vitest"

const { SHOPS, shopAt } = BundledSelectorLibrary

const selectors = SHOPS.flatMap(({ name, selectors }) =>
  Object.entries(selectors).flatMap(([selector, list]) => list.map((css) => ({ name, selector, css })))
)

/** What only some libraries know, or what has no place in a query. */
const isPlainCss = (css: string): boolean =>
  parse(css)
    .flat()
    .every(({ type }) => type !== "pseudo" && type !== "pseudo-element")

describe("the bundled shops", () => {
  test("are at least forty, each with its own name and domains", () => {
    expect(SHOPS.length).toBeGreaterThanOrEqual(40)
    expect(new Set(SHOPS.map(({ name }) => name)).size).toBe(SHOPS.length)
    const domains = SHOPS.flatMap(({ domains }) => domains)
    expect(new Set(domains).size).toBe(domains.length)
    for (const domain of domains) expect(domain).toMatch(/^[a-z0-9-]+(?:\.[a-z]+)+$/u)
  })

  test("have every selector, each once", () => {
    for (const { name, selectors } of SHOPS) {
      expect(Object.keys(selectors), name).toEqual(Selectors.NAMES)
      for (const list of Object.values(selectors)) {
        expect(list.length, name).toBeGreaterThan(0)
        expect(new Set(list).size, name).toBe(list.length)
      }
    }
  })

  test.each(selectors)("$name: $css is one CSS selector, and no code", ({ css }) => {
    expect(parse(css)).toHaveLength(1)
    expect(isPlainCss(css)).toBe(true)
    expect(css).not.toMatch(/javascript|<|\{|\}|;|\n/iu)
  })

  test("a selector that is none would be found", () => {
    expect(() => parse("div[")).toThrow()
    expect(() => parse("alert(1)")).toThrow()
    expect(isPlainCss("div:first")).toBe(false)
  })
})

describe("the shop of a host", () => {
  test("is that of its domain, or of one above it", () => {
    for (const { domains, name } of SHOPS)
      for (const domain of domains)
        for (const host of [domain, `www.${domain}`, `a.b.${domain}.`]) expect(shopAt(host)?.name, host).toBe(name)
  })

  test.each(["", "com", "shop.example.com", "notamazon.com", "amazon.com.example", "amazon.evil", "192.0.2.1", "[::1]"])(
    "%j is of none",
    (host) => expect(shopAt(host)).toBeUndefined()
  )
})

const run = (input: { readonly url: string; readonly selector_name: Selectors.Name }) =>
  Selectors.find
    .run(input, { accountId: "acc", requestId: "req", reservationId: "res" })
    .pipe(Effect.provide(BundledSelectorLibrary.layer), Effect.runPromise)

describe("the operation", () => {
  test("answers the documented example", async () => {
    const { data, input } = Selectors.find.example ?? {}
    if (input === undefined) throw new Error("there is no example")
    expect(await run(input)).toEqual({ data })
  })

  test("says of an unknown shop that it has no selectors", async () => {
    expect(await run({ url: "https://shop.example.com/p/7", selector_name: "getPriceCurrent" })).toEqual({
      data: { selector_name: "getPriceCurrent", selectors: [], available: false }
    })
  })
})
