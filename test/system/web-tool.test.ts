/** The web tool in a real browser, against the real server: its pages, its policy, its live balance, calls that cost credits, and mail. */
import type { Browser, Page } from "playwright-core"
import { beforeAll, describe, expect, test } from "vitest"
import { barriersOn, openBrowser, type Visitor, visit } from "./Browser.ts"
import { asking, DOMAIN, senderTo } from "./Mail.ts"
import { balanceOf, call, newStore, openAccount, type Server, serve, temporaryFolder, UNLIMITED } from "./Server.ts"

let browser: Browser
/** Two processes on one store. */
let server: Server
let other: Server
let account: string
let key: string
const { url: store } = newStore()

beforeAll(async () => {
  const args = [
    "--store",
    store,
    "--mail-domain",
    DOMAIN,
    "--blobs",
    temporaryFolder(),
    "--speech",
    "espeak",
    "--dns-servers",
    "127.0.0.1:1"
  ]
  ;({ account, key } = await openAccount(store, 500))
  const started = await Promise.all([
    openBrowser(),
    serve([...args, "--smtp", "127.0.0.1:0"], { env: UNLIMITED }),
    serve(args, { env: UNLIMITED })
  ])
  browser = started[0]
  server = started[1]
  other = started[2]
}, 120_000)

/** Opens the page, which offers the link by mail first, and the field for a key. */
const openKeyField = async (page: Page, url: string): Promise<void> => {
  await page.goto(url)
  await page.getByText("Sign in with a key").click()
}

const signedIn = async (options?: Parameters<typeof visit>[2], at: Server = server, by: string = key): Promise<Visitor> => {
  const visitor = await visit(browser, at.url, options)
  const { page } = visitor
  await openKeyField(page, at.url)
  await page.getByLabel("API key").fill(by)
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor()
  return visitor
}

const goTo = async (page: Page, name: string): Promise<void> => {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click()
  await page.getByRole("heading", { name, level: 1 }).waitFor()
}

const amountIn = async (page: Page, id: string): Promise<number> => Number((await page.getByTestId(id).textContent())?.replaceAll(",", ""))

/** Waits until an amount on the page is this one. */
const untilAmount = (page: Page, id: string, amount: number): Promise<void> =>
  expect.poll(() => amountIn(page, id), { timeout: 20_000 }).toBe(amount)

/** A call beside the page, of another process. */
const lookUp = (at: Server) => call(`${at.url}/api/v1/bin/45717360`, { key })

test("a key signs in, stays in the memory of the page alone, and a wrong one is refused", { timeout: 60_000 }, async () => {
  const { page, wrongs } = await visit(browser, server.url)
  await openKeyField(page, server.url)
  await page.getByLabel("API key").fill("mr_live_wrong")
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("alert").getByText("does not know this key").waitFor()
  expect(await barriersOn(page)).toEqual([])

  await page.getByLabel("API key").fill(key)
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor()
  expect(await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])")).not.toContain(
    key
  )
  await page.reload()
  await page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor()
  expect(wrongs).toEqual([])
})

describe.each([
  { width: 1280, height: 860, colorScheme: "light" },
  { width: 360, height: 780, colorScheme: "dark" }
] as const)("at $width pixels, $colorScheme", ({ colorScheme, height, width }) => {
  test("each page has no barrier, breaks no policy, asks nobody else, and fits", { timeout: 60_000 }, async () => {
    await lookUp(server)
    const { page, shifted, wrongs } = await signedIn({ viewport: { width, height }, colorScheme })
    await page.getByText("bin.lookup").first().waitFor()
    // A plot, a bar or a list that comes late takes the place that was kept for it
    expect(await shifted()).toBeLessThan(0.1)
    for (const name of ["Overview", "Try", "Calls", "Jobs", "Inbox"]) {
      await goTo(page, name)
      await expect.poll(() => page.locator("[aria-busy=true]").count()).toBe(0)
      expect([name, await barriersOn(page)]).toEqual([name, []])
      expect([name, await page.evaluate("document.documentElement.scrollWidth - innerWidth <= 0")]).toEqual([name, true])
    }
    await page.goto(`${server.url}/#/try/grammar.check`)
    await page.getByRole("button", { name: "Call", exact: true }).waitFor()
    expect(await barriersOn(page)).toEqual([])
    await goTo(page, "Calls")
    await page.locator("summary", { hasText: "bin.lookup" }).first().click()
    await page.getByText("by version 1 of the prices").first().waitFor()
    expect(await barriersOn(page)).toEqual([])
    expect(wrongs).toEqual([])
    await page.context().close()
  })
})

test("a place that changes while the tool draws itself for the first time is not missed", { timeout: 60_000 }, async () => {
  const { page, wrongs } = await visit(browser, server.url)
  // As early as it can be: in the moment in which the first heading stands in the page
  await page.addInitScript(`
    new MutationObserver((_, observer) => {
      if (document.querySelector("h1")?.textContent !== "Overview") return
      observer.disconnect()
      location.hash = "#/try/speech.synthesize"
    }).observe(document, { childList: true, subtree: true })
  `)
  await openKeyField(page, server.url)
  await page.getByLabel("API key").fill(key)
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByText("Costs 5 credits").waitFor()
  expect(wrongs).toEqual([])
  await page.context().close()
})

test("a call is made by keyboard alone: its price before it, its cost and the balance after it", { timeout: 60_000 }, async () => {
  const before = (await balanceOf(store, account)).available
  const { page, wrongs } = await visit(browser, server.url)
  await page.goto(server.url)
  const { keyboard } = page
  await page.getByText("Sign in with a key").focus()
  await keyboard.press("Enter")
  await page.getByLabel("API key").waitFor()
  await keyboard.press("Tab")
  await keyboard.type(key)
  await keyboard.press("Enter")
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor()

  const press = async (name: string, until: string) => {
    for (let presses = 0; presses < 40; presses++) {
      await keyboard.press(name)
      if ((await page.evaluate("document.activeElement.textContent + (document.activeElement.placeholder ?? '')")) === until) return
    }
    throw new Error(`${until} was not reached by ${name}`)
  }
  await page.evaluate("document.body.focus()")
  await press("Tab", "Try")
  await keyboard.press("Enter")
  await page.getByRole("heading", { name: "Try", level: 1 }).waitFor()
  await press("Tab", "Search the operations")
  await keyboard.type("card number")
  await keyboard.press("Enter")
  await page.getByText("Costs 0.5 credits (USD 0.0005)").waitFor()
  await press("Tab", "Call")
  await keyboard.press("Enter")
  await page.getByTestId("charged").waitFor()
  expect([await amountIn(page, "charged"), await amountIn(page, "balance-after")]).toEqual([0.5, before - 0.5])
  expect((await balanceOf(store, account)).available).toBe(before - 0.5)

  // The arrow keys choose a tab, and the headers of the answer are there
  await press("Tab", "Answer")
  await keyboard.press("ArrowRight")
  await page.getByRole("row", { name: "x-credits-charged 0.5" }).waitFor()
  await page.getByRole("tab", { name: "Python" }).click()
  await page.getByText("urllib.request.Request(").waitFor()
  expect(await page.getByRole("region", { name: "the call in python" }).textContent()).not.toContain(key)
  expect(wrongs).toEqual([])
  await page.context().close()
})

test("what another process charges changes the balance in two browsers, without a reload", { timeout: 60_000 }, async () => {
  const [first, second] = await Promise.all([signedIn(), signedIn({}, other)])
  const before = (await balanceOf(store, account)).available
  await Promise.all([first, second].map(({ page }) => page.getByRole("status").getByText("Live").waitFor()))
  await Promise.all([first, second].map(({ page }) => untilAmount(page, "balance", before)))
  expect((await lookUp(other)).status).toBe(200)
  await Promise.all([first, second].map(({ page }) => untilAmount(page, "balance", before - 0.5)))
  for (const { page, wrongs } of [first, second]) {
    expect(wrongs).toEqual([])
    await page.context().close()
  }
})

test("a job is followed to its file, which plays, and stands among the jobs", { timeout: 60_000 }, async () => {
  const { page, wrongs } = await signedIn()
  await page.goto(`${server.url}/#/try/speech.synthesize`)
  await page.getByText("Costs 5 credits").waitFor()
  await page.getByRole("button", { name: "Call", exact: true }).click()
  const audio = page.locator("audio")
  await audio.waitFor({ timeout: 40_000 })
  await expect.poll(() => audio.evaluate((element) => (element as unknown as { readonly duration: number }).duration)).toBeGreaterThan(0.5)
  await goTo(page, "Jobs")
  await page.getByText("completed").first().waitFor()
  await page.getByRole("button", { name: "Show the file" }).first().click()
  await page.locator("audio").waitFor()
  expect(await barriersOn(page)).toEqual([])
  expect(wrongs).toEqual([])
  await page.context().close()
})

test("mail arrives while one looks, and can do nothing in its frame", { timeout: 60_000 }, async () => {
  const { page, wrongs } = await signedIn()
  await goTo(page, "Inbox")
  await page.getByLabel("Label").fill("sign-up test")
  await page.getByRole("button", { name: "Create" }).click()
  await page.getByText("Waiting for mail.").waitFor()
  const address = (await page.getByRole("region", { name: "the address" }).textContent()) ?? ""
  const sender = senderTo(server)
  const html =
    '<h1 style="color:red" onclick="alert(1)">Welcome</h1><p>Your code is 123456</p><img src="https://tracker.example/x.png"><script>document.title = "owned"</script><form action="https://evil.example"><button>Go</button></form>'
  await sender.send({ to: address.trim(), subject: "Confirm your address", html })
  sender.close()
  await page.getByRole("button", { name: "Confirm your address" }).click()
  const frame = page.frameLocator("iframe.mail")
  await frame.getByText("Your code is 123456").waitFor()
  expect(await frame.locator("script, form, [style], [onclick], img[src]").count()).toBe(0)
  expect(await page.locator("iframe.mail").getAttribute("sandbox")).toBe("")
  expect(await page.title()).toBe("Inbox · Millrace")
  expect(await barriersOn(page)).toEqual([])
  expect(wrongs).toEqual([])
  await page.context().close()
})

test("a job that waits can be cancelled, and gives its credits back", { timeout: 60_000 }, async () => {
  // A store without a runner: the job waits until it is cancelled
  const { url: store } = newStore()
  const { key } = await openAccount(store, 100)
  const idle = await serve(["--store", store, "--jobs", "0", "--speech", "espeak", "--blobs", temporaryFolder()], { env: UNLIMITED })
  const { page, wrongs } = await signedIn({}, idle, key)
  await untilAmount(page, "balance", 100)
  const accepted = await asking(idle, key).send("/audio/tts", { method: "POST", body: JSON.stringify({ text: "Never said" }) })
  expect(accepted.status).toBe(200)
  await untilAmount(page, "held", 5)
  await goTo(page, "Jobs")
  await page.getByRole("button", { name: "Cancel" }).click()
  await page.getByText("0 charged").waitFor()
  expect(await page.getByRole("button", { name: "Cancel" }).count()).toBe(0)
  await goTo(page, "Overview")
  await untilAmount(page, "balance", 100)
  await untilAmount(page, "held", 0)
  expect(wrongs).toEqual([])
  await page.context().close()
})

test("the page and its files are small, compressed, and kept as long as they may be", async () => {
  const page = await fetch(server.url)
  const html = await page.text()
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'; script-src 'self'; style-src 'self';")
  expect(page.headers.get("cache-control")).toBe("private, no-cache")
  expect(html).not.toMatch(/<style|style="|<script(?! type="module" src=)| on\w+=/u)
  const names = [...html.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/gu)].map(([, name]) => String(name))
  expect(names).toHaveLength(3)
  const files = await Promise.all(
    names.map((name) =>
      fetch(server.url + name, { headers: { "accept-encoding": "br" } }).then(async (file) => ({ file, body: await file.arrayBuffer() }))
    )
  )
  for (const { file } of files) {
    expect(file.headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
    expect(file.headers.get("content-encoding")).toBe("br")
  }
  const sizes = await Promise.all(
    names.map((name) =>
      call(server.url + name, { headers: { "accept-encoding": "br" } }).then(({ headers }) => Number(headers["content-length"]))
    )
  )
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(100_000)
  expect((await fetch(`${server.url}/assets/main-0000000000.js`)).status).toBe(404)
})
