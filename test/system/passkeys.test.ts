/** Passkeys in a real browser, with an authenticator that Chromium simulates: added, used in place of a mail, and removed. */
import type { CDPSession, Page } from "playwright-core"
import { expect, test } from "vitest"
import { barriersOn, openBrowser, visit } from "./Browser.ts"
import { auditOf, newStore, type Server, serve } from "./Server.ts"

const ADA = "ada@example.com"

const linkOf = ({ stderr, stdout }: Server): string =>
  [...`${stdout}${stderr}`.matchAll(/http:\S+\/sign-in#link_[\w.-]+/gu)].map(([link]) => link).at(-1) ?? ""

/** A device that verifies its user, and keeps passkeys. */
const withDevice = async (page: Page): Promise<{ readonly session: CDPSession; readonly authenticatorId: string }> => {
  const session = await page.context().newCDPSession(page)
  await session.send("WebAuthn.enable")
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true }
  })
  return { session, authenticatorId }
}

const signedInBy = async (page: Page) =>
  page.evaluate(async () => {
    const answer = await fetch("/api/v1/sessions/current")
    return ((await answer.json()) as { readonly data: object }).data
  })

test("a person adds a passkey, signs in with it without a mail, and removes it", { timeout: 120_000 }, async () => {
  const { url: store } = newStore()
  const server = await serve(["--store", store, "--mail-relay", "print"])
  const origin = server.url.replace("127.0.0.1", "localhost")
  const { page, wrongs } = await visit(await openBrowser(), origin)
  const { authenticatorId, session } = await withDevice(page)

  await page.goto(`${origin}/`)
  await page.getByLabel("E-mail address").fill(ADA)
  await page.getByRole("button", { name: "Mail me a link" }).click()
  await page.getByText("a link is on its way").waitFor()
  await expect.poll(() => linkOf(server)).not.toBe("")
  // The browser asked under this name, and its cookie is for it
  expect(new URL(linkOf(server)).host).toBe(new URL(origin).host)
  await page.goto(linkOf(server))
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByTestId("balance").waitFor()

  await page.goto(`${origin}/#/keys`)
  await page.getByText("There is no passkey").waitFor()
  const card = page.locator("section", { has: page.getByRole("heading", { name: "Passkeys" }) })
  await card.getByLabel("Name of the passkey").fill("this laptop")
  await card.getByRole("button", { name: "Add a passkey" }).click()
  await card.getByText("this laptop").waitFor()
  expect(await barriersOn(page)).toEqual([])
  const kept = await session.send("WebAuthn.getCredentials", { authenticatorId })
  expect(kept.credentials).toMatchObject([{ isResidentCredential: true, rpId: "localhost" }])
  // The device has it, and is not asked for another one
  await card.getByRole("button", { name: "Add a passkey" }).click()
  await card.getByText("This device has a passkey of this account already.").waitFor()

  await page.getByRole("button", { name: "Sign out", exact: true }).first().click()
  await page.getByRole("button", { name: "Use a passkey" }).click()
  await card.getByText(/^added .*, used /u).waitFor()
  expect(await signedInBy(page)).toMatchObject({ address: ADA, proof: "passkey" })
  await card.getByRole("button", { name: "Remove" }).click()
  await page.getByText("There is no passkey").waitFor()
  await page.getByRole("button", { name: "Sign out", exact: true }).first().click()
  await page.getByRole("button", { name: "Use a passkey" }).click()
  await page.getByText("This passkey is not known here, or was removed.").waitFor()
  expect(await barriersOn(page)).toEqual([])
  expect(wrongs).toEqual([])
  expect((await server.stop()).code).toBe(0)
  expect((await auditOf(store)).problems).toEqual([])
})

test("at an IP address, the page says where passkeys can be used", { timeout: 60_000 }, async () => {
  const server = await serve(["--store", newStore().url, "--mail-relay", "print"])
  const { page } = await visit(await openBrowser(), server.url)
  await page.goto(`${server.url}/`)
  await page.getByRole("button", { name: "Use a passkey" }).click()
  await page.getByText(`Open ${server.url.replace("127.0.0.1", "localhost")} instead`).waitFor()
})
