/**
 * The story of the README in a real browser, without a network: a stranger signs up, tries ten calls, follows the link that the server
 * printed, buys credits, is invoiced, and spends them.
 */
import type { Page } from "playwright-core"
import { expect, test } from "vitest"
import { barriersOn, openBrowser, visit } from "./Browser.ts"
import { millrace } from "./InProcess.ts"
import { auditOf, newStore, type Server, serve, UNLIMITED } from "./Server.ts"

const ADA = "ada@example.com"
const SIZES = [
  { width: 1280, height: 860, colorScheme: "light" },
  { width: 360, height: 780, colorScheme: "dark" }
] as const

/** The address of the link that was printed last. */
const linkOf = ({ stderr, stdout }: Server): string => {
  const links = [...`${stdout}${stderr}`.matchAll(/http:\S+\/sign-in#link_[\w.-]+/gu)].map(([link]) => link)
  return links.at(-1) ?? ""
}

const goTo = async (page: Page, name: string): Promise<void> => {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click()
  await page.getByRole("heading", { name, level: 1 }).waitFor()
}

/** Makes the call of the form that is open. */
const makeCall = async (page: Page): Promise<void> => {
  const answered = page.waitForResponse((response) => response.url().includes("/api/v1/bin/"))
  await page.getByRole("button", { name: "Call", exact: true }).click()
  await answered
}

const balanceOn = (page: Page) => async (): Promise<number> =>
  Number((await page.getByTestId("balance").textContent())?.replaceAll(",", ""))

/** Nothing on the page keeps anybody out, and nothing is wider than the window. */
const expectFit = async (page: Page, what: string): Promise<void> => {
  await expect.poll(() => page.locator("[aria-busy=true]").count()).toBe(0)
  for (const { colorScheme, ...size } of SIZES) {
    await page.setViewportSize(size)
    await page.emulateMedia({ colorScheme })
    expect([what, size.width, await barriersOn(page)]).toEqual([what, size.width, []])
    expect([what, size.width, await page.evaluate("document.documentElement.scrollWidth - innerWidth <= 0")]).toEqual([
      what,
      size.width,
      true
    ])
  }
  await page.setViewportSize(SIZES[0])
}

test("a stranger signs up, tries ten calls, buys credits, is invoiced and spends them, in a browser", { timeout: 180_000 }, async () => {
  const { url: store } = newStore()
  const plans = JSON.stringify({ standard: { price: 20, credits: 25_000, period: "month" } })
  const server = await serve(["--store", store, "--mail-relay", "print", "--payments", "manual", "--plans", plans], { env: UNLIMITED })
  const browser = await openBrowser()
  const { page, wrongs } = await visit(browser, server.url)

  // Signing up: the account is there at once, with ten free calls
  await page.goto(server.url)
  await page.getByRole("button", { name: "Open an account" }).waitFor()
  await expectFit(page, "Sign in")
  await page.getByLabel("E-mail address").fill(ADA)
  await page.getByRole("button", { name: "Open an account" }).click()
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor()
  await page.getByText("10 of 10").waitFor()
  await expectFit(page, "Overview on trial")

  await page.goto(`${server.url}/#/try/bin.lookup`)
  await page.getByText("Costs one of the 10 trial calls that are left").waitFor()
  for (let call = 1; call <= 9; call++) await makeCall(page)
  await page.getByText("Costs the last trial call").waitFor()
  await makeCall(page)
  await page.getByText("Costs 0.5 credits").waitFor()
  await page.getByRole("button", { name: "Call", exact: true }).click()
  await page.getByText("trial_used_up").first().waitFor()
  await goTo(page, "Overview")
  await page.getByText("0 of 10").waitFor()

  // The link verifies the address, which brings 200 credits
  await page.goto(linkOf(server))
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor()
  await expect.poll(balanceOn(page)).toBe(200)
  await page.goto(`${server.url}/#/try/bin.lookup`)
  await makeCall(page)
  await goTo(page, "Overview")
  await expect.poll(balanceOn(page)).toBe(199.5)

  // Buying: the operator says that the money is there, and the page changes by itself
  await goTo(page, "Billing")
  await page.getByText("There is no invoice yet").waitFor()
  await page.getByLabel("$25").check()
  await page.getByRole("button", { name: "Buy", exact: true }).click()
  const payment = /pay_[0-9A-Z]{26}/u.exec((await page.getByRole("region", { name: "The payment" }).textContent()) ?? "")?.[0] ?? ""
  await expectFit(page, "Billing with a payment")
  expect(await millrace(["payments", "approve", payment, "--store", store])).toMatchObject({ code: 0 })
  await page.getByRole("region", { name: "The payment" }).getByText("captured").waitFor()
  const number = `INV-${new Date().toISOString().slice(0, 7)}-000001`
  const link = page.getByRole("link", { name: number })
  await link.waitFor()
  await expectFit(page, "Billing with an invoice")

  // The invoice is a page of its own
  const opened = page.context().waitForEvent("page")
  await link.click()
  const invoice = await opened
  await invoice.getByRole("heading", { name: "Invoice", level: 1 }).waitFor()
  expect(await invoice.getByText("25.00").count()).toBeGreaterThan(0)
  expect(await invoice.getByText(ADA).count()).toBe(1)
  expect((await invoice.pdf()).toString("latin1").match(/\/Type\s*\/Page\b/gu)).toHaveLength(1)
  await invoice.close()

  // A plan, which is paid in the same way
  await page.getByRole("button", { name: "Subscribe standard" }).click()
  const asked = page.getByRole("region", { name: "The payment of the plan" })
  const first = /pay_[0-9A-Z]{26}/u.exec((await asked.textContent()) ?? "")?.[0] ?? ""
  expect(await millrace(["payments", "approve", first, "--store", store])).toMatchObject({ code: 0 })
  // The page may hear of the payment first: then the button is gone
  const paid = asked.getByRole("button", { name: "I have paid" })
  const gone = asked.waitFor({ state: "detached" })
  await Promise.race([paid.click().catch(() => gone), gone])
  await page.getByText("25,000 credits each period").waitFor()
  await expectFit(page, "Billing with a plan")

  // A key that spends what was bought
  await goTo(page, "Keys")
  await page.getByLabel("Name", { exact: true }).fill("reports")
  await page.getByLabel("manage keys").check()
  await page.getByRole("button", { name: "Issue" }).click()
  await page.getByText("Copy it now").waitFor()
  await page.getByText("read, operations, keys").waitFor()
  await expectFit(page, "Keys and sessions")
  const key = /mr_live_\w[\w-]+/u.exec((await page.locator("pre, code").allTextContents()).join(" "))?.[0] ?? ""
  const spent = await fetch(`${server.url}/api/v1/bin/45717360`, { headers: { authorization: `Bearer ${key}` } })
  expect([spent.status, spent.headers.get("x-credits-charged")]).toEqual([200, "0.5"])
  await goTo(page, "Overview")
  await expect.poll(balanceOn(page), { timeout: 20_000 }).toBe(50_199)

  expect(wrongs).toEqual([])
  await server.stop()
  expect((await auditOf(store)).problems).toEqual([])
})
