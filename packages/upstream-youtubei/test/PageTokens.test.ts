import { Effect } from "effect"
import fc from "fast-check"
import { expect, test } from "vitest"
import * as PageTokens from "../src/PageTokens.ts"

const LIST = ["list", "of a test"]

/** A site whose pages have these items; the token of a page is its number. */
const siteOf = (pages: ReadonlyArray<ReadonlyArray<number>>) => (continuation: string | undefined) =>
  Effect.sync(() => {
    const at = Number(continuation ?? 0)
    return { items: pages[at] ?? [], continuation: at + 1 < pages.length ? String(at + 1) : undefined }
  })

const pages = fc.array(fc.array(fc.integer(), { maxLength: 40 }), { minLength: 1, maxLength: 8 })

/** All pages from the first, by their tokens. */
const readAll = Effect.fnUntraced(function* (site: ReturnType<typeof siteOf>, perPage: number) {
  const read: Array<PageTokens.Page<number>> = []
  for (let token: string | null | undefined; token !== null; ) {
    const page: PageTokens.Page<number> = yield* PageTokens.read(LIST, yield* PageTokens.placeOf(LIST, token), perPage, site)
    read.push(page)
    token = page.next_page_token
  }
  return read
})

test("pages of any size show all that the site has, once and in its order", () =>
  fc.assert(
    fc.asyncProperty(pages, fc.integer({ min: 1, max: 50 }), async (pages, perPage) => {
      const read = await Effect.runPromise(readAll(siteOf(pages), perPage))
      expect(read.flatMap(({ items }) => items)).toEqual(pages.flat())
      expect(read.every(({ items }) => items.length <= perPage)).toBe(true)
    })
  ))

test("a page of the site is never asked for more than it takes", () =>
  fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 50 }), async (perPage) => {
      let asked = 0
      const site = (continuation: string | undefined) =>
        Effect.sync(() => {
          asked++
          return { items: [], continuation: `${continuation}.` }
        })
      const page = await Effect.runPromise(PageTokens.read(LIST, { continuation: undefined, skip: 0 }, perPage, site))
      expect(asked).toBe(5)
      expect(page.next_page_token).not.toBeNull()
    })
  ))

test("no text but a token of the same list is one", () =>
  fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string(),
        fc.base64String(),
        fc.json().map((text) => Buffer.from(text).toString("base64url"))
      ),
      async (token) => {
        const place = await Effect.runPromise(Effect.result(PageTokens.placeOf(LIST, token)))
        expect(place).toMatchObject({ _tag: "Failure", failure: { _tag: "InvalidInput", field: "page_token" } })
      }
    )
  ))
