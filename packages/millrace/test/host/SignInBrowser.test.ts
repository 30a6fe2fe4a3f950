/** The web tool at a host of the library, in a real browser: a stranger signs up, opens the mailed link, and lands on the page again. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import express from "express"
import { expect, test } from "vitest"
import { barriersOn, openBrowser, visit } from "../../../../test/system/Browser.ts"
import { undoAfterwards } from "../../../../test/system/Leftovers.ts"
import { createMillrace, type Host, type OutgoingMail, type SignInOptions } from "../../src/index.ts"
import { linkIn } from "./Visitor.ts"

const ADA = "ada@example.org"

/** A host in Express with the web tool at `/console`, and its own pages beside it. */
const open = async (signIn: Partial<SignInOptions> = {}) => {
  const app = express()
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const mails: Array<OutgoingMail> = []
  const millrace: Host = await createMillrace({
    store: "memory:",
    standard: ["account", "bin", "keys"],
    api: { title: "Acme" },
    log: {},
    signIn: { publicUrl: url, mailRelay: (mail) => void mails.push(mail), ...signIn },
    webTool: "/console"
  })
  app.use(millrace.handler)
  app.get("/welcome", (_, response) => void response.send("<!doctype html><title>Welcome</title><p>Welcome to Acme"))
  undoAfterwards(async () => {
    await new Promise((resolve) => {
      server.close(resolve)
      server.closeAllConnections()
    })
    await millrace.close()
  })
  return { url, mails, millrace }
}

test("a stranger signs up in the web tool of a host, opens the link, and has 200 credits there", { timeout: 120_000 }, async () => {
  const { mails, millrace, url } = await open()
  const browser = await openBrowser()
  const { page, wrongs } = await visit(browser, url)
  /** Everything that the browser logs as an error, also answers of 4xx and 5xx. */
  const errors: Array<string> = []
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text())
  })

  await page.goto(`${url}/console`)
  await page.getByRole("button", { name: "Open an account" }).waitFor()
  await page.getByText("Acme", { exact: true }).waitFor()
  expect(await page.title()).toBe("Acme")
  // A first visit asks for nothing that is refused
  expect(errors).toEqual([])

  await page.getByLabel("E-mail address").fill(ADA)
  await page.getByRole("button", { name: "Open an account" }).click()
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor()
  await page.getByText("10 of 10").waitFor()
  expect(mails).toMatchObject([{ to: ADA, subject: "Sign in to Acme" }])

  // A reload takes up the session that the browser has
  await page.reload()
  await page.getByText("10 of 10").waitFor()

  await page.goto(linkIn(mails[0]?.text))
  await page.getByRole("heading", { name: "Sign in to Acme" }).waitFor()
  expect(await barriersOn(page)).toEqual([])
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.waitForURL(`${url}/console`)
  await expect.poll(async () => page.getByTestId("balance").textContent()).toBe("200")
  expect(await page.title()).toBe("Overview · Acme")
  const [account] = await millrace.accounts.list()
  expect(await millrace.balance(account?.account ?? "")).toMatchObject({ available: 200 })

  await page.getByRole("button", { name: "Sign out" }).click()
  await page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor()
  await page.reload()
  await page.getByRole("button", { name: "Open an account" }).waitFor()
  expect(wrongs).toEqual([])
  expect(errors).toEqual([])
})

test("a link leads to the page that the host chose", { timeout: 120_000 }, async () => {
  const { mails, url } = await open({ home: "/welcome?from=mail", service: "Acme" })
  const browser = await openBrowser()
  const { page, wrongs } = await visit(browser, url)
  await page.goto(`${url}/console`)
  await page.getByLabel("E-mail address").fill(ADA)
  await page.getByRole("button", { name: "Mail me a link" }).click()
  await page.getByText("Open it in this browser").waitFor()
  await page.goto(linkIn(mails[0]?.text))
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.waitForURL(`${url}/welcome?from=mail`)
  expect(await page.title()).toBe("Welcome")
  expect(wrongs).toEqual([])
})
