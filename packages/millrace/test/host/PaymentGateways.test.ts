/** A host takes payments by Stripe: its keys come from the environment, and a missing one is named. */
import { Effect, Exit, Scope } from "effect"
import { afterEach, expect, it, vi } from "vitest"
import { API_KEY, StripeServer, WEBHOOK_SECRET } from "../../../upstreams/test/payments/StripeServer.ts"
import { createMillrace, type Host } from "../../src/index.ts"

let millrace: Host | undefined
const scope = Scope.makeUnsafe()
afterEach(async () => {
  await millrace?.close()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  vi.unstubAllEnvs()
})

const open = (gateway: "stripe" | "paypal") => createMillrace({ store: "memory:", log: {}, standard: ["billing"], payments: { gateway } })

it("sells credits by Stripe: requested, authorized, captured, told by a signed webhook, and disputed", async () => {
  const stripe = new StripeServer()
  const url = await Effect.runPromise(Scope.provide(stripe.server.serve, scope))
  vi.stubEnv("MILLRACE_STRIPE_KEY", API_KEY)
  vi.stubEnv("MILLRACE_STRIPE_WEBHOOK_SECRET", `whsec_of_the_next_month, ${WEBHOOK_SECRET}`)
  vi.stubEnv("MILLRACE_STRIPE_URL", url.href)
  const host = await open("stripe")
  millrace = host
  await host.accounts.open({ id: "ada" })
  const { key } = await host.keys.issue("ada")
  const post = async (path: string) => {
    const request = new Request(`http://localhost/api/v1/billing/topups${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` }
    })
    return (await (await host.fetch(request)).json()) as { readonly data: Record<string, string> }
  }
  const { data } = await post("")
  expect(data).toMatchObject({ status: "pending", gateway: "stripe", client_secret: expect.stringContaining("secret") })
  const id = String(data["payment_id"])
  const reference = String((await host.payments.show(id)).reference)
  stripe.authorize(reference)
  expect((await post(`/${id}/capture`)).data).toMatchObject({ status: "captured" })
  expect(await host.balance("ada")).toMatchObject({ available: 10_000 })
  stripe.webhooks()
  stripe.dispute(reference, 1_000)
  for (const { body, headers } of stripe.webhooks()) {
    const sent = Object.entries(headers).flatMap(([name, value]): Array<[string, string]> => (value === undefined ? [] : [[name, value]]))
    const request = (more: Array<[string, string]>) =>
      new Request("http://localhost/hooks/payments/stripe", { method: "POST", headers: more, body: Buffer.from(body) })
    expect((await host.fetch(request([]))).status).toBe(401)
    expect((await host.fetch(request(sent))).status).toBe(204)
  }
  expect(await host.balance("ada")).toMatchObject({ available: 0 })
  expect(await host.payments.show(id)).toMatchObject({ disputes: 1, returned: 10 })
})

it("names the setting that is missing, and echoes no secret", async () => {
  const refused = (gateway: "stripe" | "paypal") => open(gateway).catch((error: Error) => error.message)
  expect(await refused("stripe")).toContain("Payments by stripe need MILLRACE_STRIPE_KEY")
  vi.stubEnv("MILLRACE_STRIPE_KEY", API_KEY)
  expect(await refused("stripe")).toContain("MILLRACE_STRIPE_WEBHOOK_SECRET")
  vi.stubEnv("MILLRACE_STRIPE_WEBHOOK_SECRET", WEBHOOK_SECRET)
  vi.stubEnv("MILLRACE_STRIPE_URL", `ftp://${API_KEY}`)
  const wrong = await refused("stripe")
  expect(wrong).toContain("MILLRACE_STRIPE_URL")
  expect(wrong).not.toContain(API_KEY)
  vi.stubEnv("MILLRACE_PAYPAL_CLIENT_ID", "id")
  expect(await refused("paypal")).toContain("MILLRACE_PAYPAL_CLIENT_SECRET")
})
