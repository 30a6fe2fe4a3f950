/** The web tool by keyboard alone, on a narrow screen and with reduced motion: signing in, moving between pages, and buying credits. */
import type { Page } from "playwright-core"
import { expect, test } from "vitest"
import { openBrowser, visit } from "./Browser.ts"
import { millrace } from "./InProcess.ts"
import { newStore, openAccount, serve, UNLIMITED } from "./Server.ts"

/** What has the focus: its role or element, and its name or text. */
const focused = (page: Page): Promise<string> =>
  page.evaluate(
    "(({ activeElement: at }) => at.localName + ' ' + (at.name || '') + ' ' + (at.value || at.textContent || '').trim())(document)"
  )

/** Whether the reader sees where the focus is. */
const isFocusSeen = (page: Page): Promise<boolean> =>
  page.evaluate(
    "(({ outlineStyle, outlineWidth }) => outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2)(getComputedStyle(document.activeElement))"
  )

/** Presses Tab until this has the focus, which is seen at every stop. */
const tabTo = async (page: Page, what: RegExp): Promise<void> => {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab")
    const at = await focused(page)
    // At its end, the focus leaves the page once, to the browser
    if (!at.startsWith("body ")) expect([at, await isFocusSeen(page)]).toEqual([at, true])
    if (what.test(at)) return
  }
  throw new Error(`${what} was not reached by Tab`)
}

test("a person signs in and buys credits by keyboard alone, at 360 pixels, and sees where the focus is", { timeout: 120_000 }, async () => {
  const { url: store } = newStore()
  const { key } = await openAccount(store, 0)
  const server = await serve(["--store", store, "--mail-relay", "print", "--payments", "manual"], { env: UNLIMITED })
  const { page, wrongs } = await visit(await openBrowser(), server.url, { viewport: { width: 360, height: 780 }, reducedMotion: "reduce" })
  await page.goto(server.url)
  await page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor()
  await tabTo(page, /^summary .*Sign in with a key/u)
  await page.keyboard.press("Enter")
  await tabTo(page, /^input key/u)
  await page.keyboard.type(key)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor()
  expect(await focused(page)).toContain("h1")

  // The menu hides no page, and what opens gets the focus
  const places = page.getByRole("navigation", { name: "Pages" }).getByRole("link")
  for (const place of await places.all()) {
    const { width = 0, x = -1 } = (await place.boundingBox()) ?? {}
    expect([await place.textContent(), x >= 0 && x + width <= 360]).toEqual([await place.textContent(), true])
  }
  await tabTo(page, /^a .*Billing$/u)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "Billing", level: 1 }).waitFor()
  expect(await focused(page)).toContain("h1")

  await tabTo(page, /^input pack 10/u)
  await page.keyboard.press("ArrowDown")
  expect(await focused(page)).toContain("input pack 25")
  await tabTo(page, /^button .*Buy/u)
  await page.keyboard.press("Enter")
  const bought = page.getByRole("region", { name: "The payment", exact: true })
  await bought.getByText("pending").waitFor()
  const payment = /pay_[0-9A-Z]{26}/u.exec((await bought.textContent()) ?? "")?.[0] ?? ""
  await tabTo(page, /^button .*I have paid/u)
  expect(await millrace(["payments", "approve", payment, "--store", store])).toMatchObject({ code: 0 })
  await page.keyboard.press("Enter")
  await bought.getByText("captured").waitFor()

  // Nothing moves by itself
  expect(await page.evaluate("document.getAnimations().length")).toBe(0)
  expect(wrongs).toEqual([])
  await page.context().close()
})
