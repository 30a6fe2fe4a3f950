/**
 * Every page of the web tool in a real browser, at two widths, in the light and in the dark, for an account that has nothing yet and for one
 * with a past. With `MILLRACE_SCREENSHOTS=FOLDER` it leaves a picture of each there.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { beforeAll, expect, test } from "vitest"
import { barriersOn, openBrowser, visit } from "./Browser.ts"
import { accountWithPast } from "./History.ts"
import { millrace } from "./InProcess.ts"
import { asking, DOMAIN, senderTo } from "./Mail.ts"
import { ask, call, Issued, newStore, openAccount, type Server, serve, UNLIMITED } from "./Server.ts"

const SIZES = [
  { width: 1280, height: 860 },
  { width: 360, height: 780 }
] as const
const SCHEMES = ["light", "dark"] as const
const OPERATOR_KEY = "operator-key-that-nobody-guesses-0123456789"
const PLANS = JSON.stringify({
  starter: { price: 5, credits: 5_000, period: "month" },
  standard: { price: 20, credits: 25_000, period: "month" }
})
const PICTURES = process.env["MILLRACE_SCREENSHOTS"]

const store = newStore()
let browser: Browser
let server: Server
/** Of the account with a past. */
let key: string

const linkIn = ({ stderr, stdout }: Server): string =>
  [...`${stdout}${stderr}`.matchAll(/http:\S+\/sign-in#link_[\w.-]+/gu)].map(([link]) => link).at(-1) ?? ""

beforeAll(async () => {
  // The command line makes the store, and its master key
  await openAccount(store.url, 0)
  const account = await accountWithPast(store.file, 40)
  const scopes = ["read", "operations", "keys", "billing"].flatMap((scope) => ["--scope", scope])
  ;({ key } = await ask(Issued, ["keys", "issue", "--store", store.url, "--account", account, "--label", "console", ...scopes]))
  const file = join(store.folder, "operator.key")
  writeFileSync(file, `${OPERATOR_KEY}\n`, { mode: 0o600 })
  ;[browser, server] = await Promise.all([
    openBrowser(),
    serve(
      [
        ...["--store", store.url, "--blobs", join(store.folder, "blobs"), "--speech", "espeak", "--dns-servers", "127.0.0.1:1"],
        ...["--mail-domain", DOMAIN, "--smtp", "127.0.0.1:0", "--mail-relay", "print", "--operator-key-file", file],
        ...["--payments", "manual", "--plans", PLANS]
      ],
      { env: UNLIMITED }
    )
  ])
  await fill(asking(server, key))
}, 120_000)

/** Makes what the lists of the account show. */
const fill = async ({ create, send }: ReturnType<typeof asking>): Promise<void> => {
  const post = async (path: string, body: object) => {
    const { body: text, status } = await send(path, { method: "POST", body: JSON.stringify(body) })
    expect([path, status < 300, text]).toEqual([path, true, text])
    return (JSON.parse(text) as { readonly data: Record<string, string> }).data
  }
  await post("/audio/tts", { text: "A millrace is the stream that drives the mill." })
  await post("/account/keys", { name: "reports of the accounting department", scopes: ["read"], expires_at: "2099-12-31T00:00:00.000Z" })
  const given = await post("/account/keys", { name: "old laptop", scopes: ["read", "operations"] })
  await send(`/account/keys/${given["key_id"]}`, { method: "DELETE" })
  for (const pack of ["25", "50", "10"]) {
    const { payment_id = "" } = await post("/billing/topups", { pack })
    if (pack !== "10") expect(await millrace(["payments", "approve", payment_id, "--store", store.url])).toMatchObject({ code: 0 })
  }
  const { payment_id = "" } = await post("/billing/subscriptions", { plan: "standard" })
  expect(await millrace(["payments", "approve", payment_id, "--store", store.url])).toMatchObject({ code: 0 })
  const { address } = await create({ label: "sign-up test" })
  const sender = senderTo(server)
  await sender.send({ to: address, subject: "Confirm your address", html: "<h1>Welcome</h1><p>Your code is <b>123456</b>.</p>" })
  await sender.send({ to: address, subject: "A subject that is so long that it has to go on in a second line of the list", text: "Hello" })
  sender.close()
}

/** Whether nothing is on its way. */
const settled = (page: Page) => expect.poll(() => page.locator("[aria-busy=true]").count(), { timeout: 20_000 }).toBe(0)

/** Nothing on the page keeps anybody out, at any size and in any light, and nothing is wider than the window. */
const expectShowable = async (page: Page, name: string): Promise<void> => {
  await settled(page)
  for (const size of SIZES) {
    await page.setViewportSize(size)
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
      const where = `${name}, ${size.width} pixels, ${colorScheme}`
      if (PICTURES !== undefined) {
        mkdirSync(PICTURES, { recursive: true })
        await page.screenshot({ path: join(PICTURES, `${name}-${size.width}-${colorScheme}.png`), fullPage: true })
      }
      expect([where, await barriersOn(page)]).toEqual([where, []])
      expect([where, await page.evaluate("document.documentElement.scrollWidth - innerWidth <= 0")]).toEqual([where, true])
    }
  }
  await page.setViewportSize(SIZES[0])
}

const goTo = async (page: Page, place: string, heading: string): Promise<void> => {
  await page.goto(`${server.url}/#/${place}`)
  await page.getByRole("heading", { name: heading, level: 1 }).waitFor()
}

const PLACES = [
  ["overview", "Overview"],
  ["try", "Try"],
  ["calls", "Calls"],
  ["jobs", "Jobs"],
  ["inbox", "Inbox"],
  ["keys", "Keys"],
  ["billing", "Billing"]
] as const

const signInWith = async (page: Page, own: string): Promise<void> => {
  await page.goto(server.url)
  await page.getByText("Sign in with a key").click()
  await page.getByLabel("API key").fill(own)
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor()
}

test("before one is signed in, and with an account that has nothing yet", { timeout: 180_000 }, async () => {
  const { page, wrongs } = await visit(browser, server.url)
  await page.goto(server.url)
  await page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor()
  await expectShowable(page, "sign-in")
  await page.getByText("Sign in with a key").click()
  await page.getByLabel("API key").fill("mr_live_nobody")
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("alert").waitFor()
  await expectShowable(page, "sign-in-refused")
  await page.getByLabel("E-mail address").fill("ada@example.com")
  await page.getByRole("button", { name: "Open an account" }).click()
  await page.getByText("10 of 10").waitFor()
  for (const [place, heading] of PLACES) {
    await goTo(page, place, heading)
    await expectShowable(page, `empty-${place}`)
  }
  await page.goto(linkIn(server))
  await page.getByRole("button", { name: "Sign in" }).waitFor()
  await expectShowable(page, "sign-in-link")
  expect(wrongs).toEqual([])
  await page.context().close()
})

test("with an account that has a past", { timeout: 180_000 }, async () => {
  const { page, wrongs } = await visit(browser, server.url)
  await signInWith(page, key)
  for (const [place, heading] of PLACES) {
    await goTo(page, place, heading)
    await expectShowable(page, `full-${place}`)
  }
  await goTo(page, "calls", "Calls")
  await page.locator("summary", { hasText: "grammar.check" }).first().click()
  await page.locator("details[open]").getByText("by version 1 of the prices").waitFor()
  await expectShowable(page, "call-opened")
  await goTo(page, "try/bin.lookup", "Try")
  await page.getByRole("button", { name: "Call", exact: true }).click()
  await page.getByTestId("charged").waitFor()
  await expectShowable(page, "try-answered")
  await goTo(page, "try/inbox.create", "Try")
  await expectShowable(page, "try-form")
  await goTo(page, "jobs", "Jobs")
  await page.getByRole("button", { name: "Show the file" }).first().click()
  await page.locator("audio").waitFor()
  await expectShowable(page, "job-opened")
  await goTo(page, "inbox", "Inbox")
  await page.getByRole("button", { name: /^Open/u }).first().click()
  await page.getByRole("button", { name: "Confirm your address" }).click()
  await page.frameLocator("iframe.mail").getByText("123456").waitFor()
  await expectShowable(page, "inbox-opened")
  await goTo(page, "keys", "Keys")
  await page.getByLabel("Name").fill("pipeline")
  await page.getByRole("button", { name: "Issue" }).click()
  await page.getByText("Copy it now").waitFor()
  await expectShowable(page, "key-issued")
  await goTo(page, "billing", "Billing")
  await page.getByRole("button", { name: "Buy", exact: true }).click()
  await page.getByRole("region", { name: "The payment" }).waitFor()
  await expectShowable(page, "billing-to-pay")
  // What was begun before is gone on with: it has its instruction again
  const waiting = page.getByRole("listitem").filter({ hasText: "$10.00 for 10,000 credits" })
  await waiting.first().getByRole("button", { name: "Go on" }).click()
  await waiting.first().getByText("to the operator of this host").waitFor()
  await expectShowable(page, "billing-go-on")
  const waited = /pay_[0-9A-Z]{26}/u.exec((await waiting.first().textContent()) ?? "")?.[0] ?? ""
  expect(await millrace(["payments", "approve", waited, "--store", store.url])).toMatchObject({ code: 0 })
  await page.getByText(waited).first().waitFor({ state: "detached" })
  // With a key, an invoice is saved: a page with a style of its own, which has no place under the policy of the tool
  const saving = page.waitForEvent("download")
  await page.getByRole("link", { name: /^INV-/u }).last().click()
  const saved = await saving
  expect(saved.suggestedFilename()).toMatch(/^INV-\d{4}-\d{2}-000001\.html$/u)
  expect(readFileSync(await saved.path(), "utf8")).toMatch(/<style>[\s\S]*<h1>Invoice/u)
  expect(page.context().pages()).toHaveLength(1)
  expect(wrongs).toEqual([])
  await page.context().close()
})

test("the pages of operators", { timeout: 180_000 }, async () => {
  const { page, wrongs } = await visit(browser, server.url)
  await page.goto(`${server.url}/#/operator`)
  await page.getByRole("heading", { name: "Operator view", level: 1 }).waitFor()
  await expectShowable(page, "operator-sign-in")
  await page.getByLabel("Operator key").fill(OPERATOR_KEY)
  await page.getByRole("button", { name: "Open" }).click()
  for (const [place, heading] of [
    ["", "State"],
    ["accounts", "Accounts"],
    ["holds", "Overdue holds"],
    ["jobs", "Waiting jobs"]
  ] as const) {
    await page.goto(`${server.url}/#/operator${place === "" ? "" : `/${place}`}`)
    await page.getByRole("heading", { name: heading, level: 1 }).waitFor()
    await expectShowable(page, `operator-${place === "" ? "state" : place}`)
  }
  expect(wrongs).toEqual([])
  await page.context().close()
})

test("a key that may not manage keys is told so", { timeout: 60_000 }, async () => {
  const { key: plain } = await openAccount(store.url, 10)
  const { page, wrongs } = await visit(browser, server.url)
  await signInWith(page, plain)
  await goTo(page, "keys", "Keys")
  await page.getByText("This key may not manage keys").waitFor()
  expect(await page.getByRole("button", { name: "Issue" }).count()).toBe(0)
  await expectShowable(page, "keys-without-scope")
  expect((await call(`${server.url}/api/v1/account/keys`, { key: plain })).status).toBe(403)
  await goTo(page, "billing", "Billing")
  await expectShowable(page, "billing-without-scope")
  expect(wrongs).toEqual([])
  await page.context().close()
})
