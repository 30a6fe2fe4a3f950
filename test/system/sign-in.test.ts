/** Signing up at the server as it comes: its mail goes to a real SMTP server, and its link to a real browser, which keeps its cookies. */
import Chromium from "@sparticuz/chromium"
import { Effect, Exit, Scope } from "effect"
import { type Browser, chromium, type Page } from "playwright-core"
import { afterAll, beforeAll, expect, test } from "vitest"
import { serve as listen } from "../../packages/upstreams/test/mail/Host.ts"
import * as Mailboxes from "../../packages/upstreams/test/mail/Mailboxes.ts"
import { auditOf, newStore, readLog, serve } from "./Server.ts"

const ADA = "ada@mail.example.test"

let browser: Browser
beforeAll(async () => {
  // In a single process, Chromium's contexts share their cookies
  const args = Chromium.args.filter((argument) => argument !== "--single-process")
  browser = await chromium.launch({ executablePath: await Chromium.executablePath(), args, headless: true })
}, 60_000)
afterAll(() => browser.close())

/** Asks in the page, as a script of this host does. */
const ask = (
  page: Page,
  path: string,
  method = "GET",
  body?: object
): Promise<{ readonly status: number; readonly data: Record<string, unknown> }> =>
  page.evaluate(
    async ([path, method, body]) => {
      const current = await fetch("/api/v1/sessions/current")
      const { data } = (await current.json()) as { readonly data?: { readonly csrf_token: string } }
      const token = data?.csrf_token ?? ""
      const headers = { "content-type": "application/json", "x-csrf-token": token }
      const answer = await fetch(path ?? "", { method: method ?? "GET", headers, ...(body === null ? {} : { body }) })
      const answered = (await answer.json()) as { readonly data?: Record<string, unknown> }
      return { status: answer.status, data: answered.data ?? {} }
    },
    [path, method, body === undefined ? null : JSON.stringify(body)] as const
  )

test("a stranger signs up, follows the mailed link in the browser, spends credits, and signs out", { timeout: 120_000 }, async () => {
  const scope = Scope.makeUnsafe()
  try {
    const mailboxes = Mailboxes.make([ADA])
    const { port } = await Effect.runPromise(Scope.provide(listen(mailboxes), scope))
    const { url: store } = newStore()
    const server = await serve(["--store", store, "--mail-from", "no-reply@example.com"], {
      env: { MILLRACE_MAIL_RELAY: `smtp://127.0.0.1:${port}` }
    })
    const page = await (await browser.newContext()).newPage()
    const troubles: Array<string> = []
    page.on("pageerror", ({ message }) => troubles.push(message))
    page.on("console", (message) => {
      if (/Content Security Policy/u.test(message.text())) troubles.push(message.text())
    })

    await page.goto(`${server.url}/sign-in`)
    expect((await ask(page, "/api/v1/signup", "POST", { address: ADA })).status).toBe(202)
    expect((await ask(page, "/api/v1/sessions/current")).data).toMatchObject({ verified: false, address: ADA })
    const [mail] = mailboxes.taken.get(ADA) ?? []
    expect(mail?.sender).toBe("no-reply@example.com")
    const text = Buffer.from(mail?.raw ?? [])
      .toString()
      .replaceAll(/=\r\n/gu, "")
      .replaceAll("=3D", "=")
    const [link = ""] = /http:\S+sign-in#\S+/u.exec(text) ?? []
    expect(link).toContain(`${server.url}/sign-in#link_`)

    // In another browser, the link signs nobody in
    const other = await (await browser.newContext()).newPage()
    await other.goto(link)
    await other.getByRole("button", { name: "Sign in" }).click()
    await other.getByText("another browser").waitFor()
    expect((await ask(other, "/api/v1/sessions/current")).status).toBe(401)

    await page.goto("about:blank")
    await page.goto(link)
    // The token is neither in the address bar nor in the history
    expect(page.url()).toBe(`${server.url}/sign-in`)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.waitForURL(`${server.url}/`)
    await page.goto(`${server.url}/sign-in`)
    expect((await ask(page, "/api/v1/sessions/current")).data).toMatchObject({ verified: true, address: ADA, proof: "mailLink" })
    expect((await ask(page, "/api/v1/bin/457173")).status).toBe(200)
    expect((await ask(page, "/api/v1/sessions/current", "DELETE")).status).toBe(200)
    expect((await ask(page, "/api/v1/bin/457173")).status).toBe(401)
    expect(troubles).toEqual([])

    expect((await server.stop()).code).toBe(0)
    await auditOf(store)
    const log = await readLog(store)
    const types = log.map(({ type }) => type)
    expect(types.filter((type) => type === "SessionEnded")).toHaveLength(2)
    expect(types.filter((type) => type === "CreditsGranted")).toHaveLength(1)
    for (const secret of [ADA, "ada@", "127.0.0.1", link.split("#")[1]?.split(".")[1] ?? ""])
      expect(JSON.stringify(log)).not.toContain(secret)
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
})

/** Signs up at a server, and presses the button of the link that it prints. Returns the page, and the answers to it that were no page. */
const signedInAt = async (options: ReadonlyArray<string>) => {
  const server = await serve(["--store", "memory:", "--mail-relay", "print", ...options])
  const page = await (await browser.newContext()).newPage()
  const missing: Array<string> = []
  page.on("response", (response) => {
    if (response.status() === 404) missing.push(response.url())
  })
  await page.goto(`${server.url}/sign-in`)
  expect((await ask(page, "/api/v1/signup", "POST", { address: ADA })).status).toBe(202)
  const linkOf = () => /http:[^\s"\\]+#link_[\w.-]+/u.exec(`${server.stdout}${server.stderr}`)?.[0] ?? ""
  await expect.poll(linkOf).not.toBe("")
  await page.goto("about:blank")
  await page.goto(linkOf())
  missing.length = 0
  await page.getByRole("button", { name: "Sign in" }).click()
  return { server, page, missing }
}

test("without the web tool, the page of the link says that one is signed in", { timeout: 60_000 }, async () => {
  const { missing, page, server } = await signedInAt(["--web-tool", "off"])
  await page.getByText("You are signed in.").waitFor()
  await expect.poll(() => page.getByRole("button").count()).toBe(0)
  expect(page.url()).toBe(`${server.url}/sign-in`)
  expect(missing.filter((url) => !url.endsWith("favicon.ico"))).toEqual([])
  expect((await ask(page, "/api/v1/sessions/current")).data).toMatchObject({ verified: true })
  await server.stop()
})

test("the link leads to the page that the operator chose", { timeout: 60_000 }, async () => {
  const { page, server } = await signedInAt(["--web-tool", "off", "--home", "/docs"])
  await page.waitForURL(`${server.url}/docs`)
  await server.stop()
})

test("a page after sign-in that is not of this server is refused at the start", async () => {
  for (const home of ["//evil.example", "https://evil.example", "/\\evil.example"])
    await expect(serve(["--store", "memory:", "--home", home])).rejects.toThrow(/--home or MILLRACE_HOME/u)
})

test("a relay or a public address that is none is refused at the start, and not shown", async () => {
  await expect(serve(["--store", "memory:", "--mail-relay", "http://name:canary@relay.example.com"])).rejects.toThrow(/mail-relay/u)
  await expect(serve(["--store", "memory:", "--mail-relay", "http://name:canary@relay.example.com"])).rejects.not.toThrow(/canary/u)
  await expect(serve(["--store", "memory:", "--public-url", "https://name:canary@api.example.com"])).rejects.toThrow(/public-url/u)
})
