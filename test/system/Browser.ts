/** A real browser, and what a page in it must never do: break its policy, ask anybody else, write an error, or shift under its reader. */

import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import chromium from "@sparticuz/chromium"
import type { AxeResults } from "axe-core"
import { type Browser, type BrowserContextOptions, chromium as launcher, type Page } from "playwright-core"
import { undoAfterwards } from "./Leftovers.ts"

/** One browser, closed after the last test of its file. Each visitor has a context of its own in it. */
export const openBrowser = async (): Promise<Browser> => {
  const browser = await launcher.launch({
    executablePath: await chromium.executablePath(),
    // Those of the package would switch off what is tested here, the protections of the web among them
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
  })
  undoAfterwards(() => browser.close())
  return browser
}

export interface Visitor {
  readonly page: Page
  /** What the page did that it must not, in words. */
  readonly wrongs: ReadonlyArray<string>
  /** How far the page shifted by itself so far: the sum of the layout shifts that followed no input. */
  readonly shifted: () => Promise<number>
}

declare global {
  // Of the page, in which parts of a test run
  var shifts: number | undefined
}

/** Runs in the page before all else. */
const WATCH = `
globalThis.shifts = 0
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) globalThis.shifts += entry.value
}).observe({ type: "layout-shift", buffered: true })
document.addEventListener("securitypolicyviolation", (event) => {
  console.error("policy: " + event.effectiveDirective + " " + event.blockedURI)
})
`

/**
 * Errors that are no wrongs of a page: answers of 4xx and 5xx; and that the driver's own script above is refused, now and then, in a frame of
 * mail, which has no right to run any. That nothing of a message is left that could run is tested by itself.
 */
const EXPECTED = ["Failed to load resource", "Blocked script execution in 'about:srcdoc'"]

/** Someone who opens a page at `origin`. Answers of 4xx and 5xx that a test wants to see are no wrongs. */
export const visit = async (browser: Browser, origin: string, options: BrowserContextOptions = {}): Promise<Visitor> => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options })
  await context.addInitScript(WATCH)
  const page = await context.newPage()
  const wrongs: Array<string> = []
  page.on("console", (message) => {
    if (message.type() === "error" && !EXPECTED.some((start) => message.text().startsWith(start))) wrongs.push(message.text())
  })
  page.on("pageerror", (error) => wrongs.push(`${error.stack}`))
  page.on("request", (request) => {
    const url = request.url()
    if (![`${origin}/`, "data:", `blob:${origin}/`].some((start) => url.startsWith(start)) && url !== "about:srcdoc")
      wrongs.push(`asked ${url}`)
  })
  return { page, wrongs, shifted: () => page.evaluate(() => globalThis.shifts ?? 0) }
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** What axe finds on the page as it stands, in words. Frames of mail run no scripts, so axe cannot look into them. */
export const barriersOn = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(AXE)
  const { violations } = await page.evaluate<AxeResults>(
    "axe.run({ iframes: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })"
  )
  return violations.flatMap(({ id, nodes }) => nodes.map(({ failureSummary, html }) => `${id}: ${html}: ${failureSummary}`))
}
