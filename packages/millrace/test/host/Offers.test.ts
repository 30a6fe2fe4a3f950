/** What a host says that people can do there, before they have an account. */
import { afterEach, expect, it } from "vitest"
import { serve } from "../../../../test/system/Server.ts"
import { createMillrace, type Host, type Options } from "../../src/index.ts"

const PATH = "/api/v1/catalog/config"

const hosts: Array<Host> = []
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close()
})

type Offers = Readonly<Record<"sign_up" | "payments" | "plans", { readonly available: boolean; readonly reason: string | null }>>

const offersIn = async (response: Response): Promise<Offers> =>
  ((await response.json()) as { readonly data: { readonly offers: Offers } }).data.offers

const available = (offers: Offers) => [offers.sign_up.available, offers.payments.available, offers.plans.available]

const offersOf = async (options: Pick<Options, "payments" | "signIn">): Promise<Offers> => {
  const host = await createMillrace({ store: "memory:", log: {}, standard: ["catalog", "billing"], ...options })
  hosts.push(host)
  return offersIn(await host.fetch(new Request(`http://localhost${PATH}`)))
}

const STANDARD = { price: 20, credits: 25_000, period: "month" } as const

it("names what is missing", async () => {
  const offers = await offersOf({})
  expect(available(offers)).toEqual([false, false, false])
  expect(offers.sign_up.reason).toContain("mail relay")
  expect(offers.sign_up.reason).toContain("public URL")
  expect(offers.payments.reason).toContain("gateway")
})

it("follows the options of a host", async () => {
  const payments = { gateway: "manual", plans: { standard: STANDARD } } as const
  expect(available(await offersOf({ payments }))).toEqual([false, true, true])
  const signIn = { publicUrl: "https://acme.example.com", mailRelay: () => undefined }
  expect(available(await offersOf({ signIn }))).toEqual([true, false, false])
})

it("follows the settings of a served process", { timeout: 60_000 }, async () => {
  const server = await serve(["--store", "memory:", "--mail-relay", "print", "--payments", "manual"])
  try {
    expect(available(await offersIn(await fetch(`${server.url}${PATH}`)))).toEqual([true, true, false])
  } finally {
    await server.stop()
  }
})
