/** Payments of a host without Effect: bought over HTTP, confirmed, told, given back; and a gateway of the host's own. */
import { PaymentGateway } from "@millrace/core"
import { Effect, Layer } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { createMillrace, type Host, type Options } from "../../src/index.ts"

const hosts: Array<Host> = []
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close()
})

const open = async (payments?: NonNullable<Options["payments"]>) => {
  const given = { store: "memory:", log: {}, standard: ["billing"], ...(payments === undefined ? {} : { payments }) } as const
  const millrace = await createMillrace(given)
  hosts.push(millrace)
  const account = await millrace.accounts.open({ id: "ada" })
  const { key } = await millrace.keys.issue("ada")
  const post = async (path: string, body?: object, token = key) => {
    const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { "content-type": "application/json" }) }
    const request = new Request(`http://localhost${path}`, { method: "POST", headers, ...(body && { body: JSON.stringify(body) }) })
    const response = await millrace.fetch(request)
    const text = await response.text()
    return { status: response.status, ...(text === "" ? {} : JSON.parse(text)) }
  }
  return { millrace, account, post }
}

describe("manual payments", () => {
  it("are bought, approved, told, and given back in part", async () => {
    const { account, millrace, post } = await open({ gateway: "manual", bonus: { 50: 5_000 }, instruction: "IBAN DE00, {payment}" })
    const told: Array<unknown> = []
    millrace.on("payment.captured", (notice) => void told.push(notice))
    const { data } = await post("/api/v1/billing/topups", { pack: "50" })
    expect(data).toMatchObject({
      status: "pending",
      amount: 50,
      credits: 50_000,
      bonus_credits: 5_000,
      instruction: `IBAN DE00, ${data.payment_id}`
    })
    expect(await millrace.payments.list({ account: "ada", status: "pending" })).toMatchObject([
      { payment: data.payment_id, account, gateway: "manual" }
    ])
    expect(await millrace.payments.approve(data.payment_id, { by: "grace" })).toMatchObject({ status: "captured", returned: 0 })
    expect(await millrace.balance("ada")).toMatchObject({ available: 55_000 })
    const captured = await post(`/api/v1/billing/topups/${data.payment_id}/capture`)
    expect(captured).toMatchObject({ status: "success", data: { status: "captured" } })
    await expect.poll(() => told).toMatchObject([{ payment: data.payment_id, money: 50, currency: "USD", credits: 50_000 }])
    expect(await millrace.payments.refund(data.payment_id, { amount: 12.5, id: "r" })).toMatchObject({ status: "captured", returned: 12.5 })
    expect(await millrace.payments.refund(data.payment_id, { amount: 12.5, id: "r" })).toMatchObject({ returned: 12.5 })
    expect(await millrace.balance("ada")).toMatchObject({ available: 42_500 })
    expect((await millrace.audit()).problems).toEqual([])
  })

  it("are hidden from other accounts", async () => {
    const { millrace, post } = await open({ gateway: "manual" })
    const { data } = await post("/api/v1/billing/topups", {})
    await millrace.accounts.open({ id: "eve" })
    const { key } = await millrace.keys.issue("eve")
    const path = `/api/v1/billing/topups/${data.payment_id}/capture`
    expect(await post(path, undefined, key)).toMatchObject({ status: 404, error: { code: "not_found" } })
  })

  it("are rejected with a reason, and refused what they are not", async () => {
    const { millrace, post } = await open({ gateway: "manual" })
    const { data } = await post("/api/v1/billing/topups", {})
    expect(await millrace.payments.reject(data.payment_id, { why: "No money came" })).toMatchObject({
      status: "failed",
      reason: "No money came"
    })
    await expect(millrace.payments.approve(data.payment_id)).rejects.toMatchObject({ code: "already_decided" })
    await expect(millrace.payments.refund(data.payment_id)).rejects.toMatchObject({ code: "refund_too_large" })
    await expect(millrace.payments.show("pay_other")).rejects.toMatchObject({ code: "payment_not_found" })
    const byHand = { amount: 1, source: "topup", paymentRef: data.payment_id } as const
    await expect(millrace.credits.grant("ada", byHand)).rejects.toMatchObject({ code: "payment_made_here" })
    await expect(millrace.payments.refund(data.payment_id, { amount: -1 })).rejects.toMatchObject({ code: "invalid_argument" })
  })
})

describe("a gateway of the host's own", () => {
  it("takes payments, and its notices have a path", async () => {
    let standing: PaymentGateway.Standing = { status: "pending", reason: null, captured: 0, refunds: [], disputes: [] }
    const gateway = Layer.succeed(PaymentGateway.PaymentGateway, {
      name: "till",
      begin: ({ paymentId }) =>
        Effect.succeed({ reference: `till_${paymentId}`, next: { _tag: "ApproveUrl", approveUrl: "https://till.example" } }),
      capture: () => Effect.sync(() => standing),
      standing: () => Effect.sync(() => standing),
      refund: () => Effect.sync(() => standing),
      notice: ({ body, headers }) =>
        headers["x-signature"] === undefined
          ? Effect.fail(new PaymentGateway.NoticeForged({ reason: "no signature" }))
          : Effect.succeed([Buffer.from(body).toString()])
    })
    const { millrace, post } = await open({ gateway })
    const { data } = await post("/api/v1/billing/topups", { pack: "25" })
    expect(data).toMatchObject({ approve_url: "https://till.example", gateway: "till" })
    standing = { ...standing, status: "captured", captured: 2_500 }
    const notice = (headers: Record<string, string>, gateway = "till") =>
      millrace.fetch(
        new Request(`http://localhost/hooks/payments/${gateway}`, { method: "POST", headers, body: `till_${data.payment_id}` })
      )
    expect((await notice({})).status).toBe(401)
    expect((await notice({ "x-signature": "right" }, "other")).status).toBe(404)
    expect(await millrace.balance("ada")).toMatchObject({ available: 0 })
    expect((await notice({ "x-signature": "right" })).status).toBe(204)
    expect(await millrace.balance("ada")).toMatchObject({ available: 25_000 })
  })
})

describe("the catalog", () => {
  it("says whether credits can be bought, and whether there are plans", async () => {
    const plans = { standard: { price: 20, credits: 25_000, period: "month" } } as const
    const availableAt = async (payments?: NonNullable<Options["payments"]>) => {
      const given = {
        store: "memory:",
        log: {},
        standard: ["billing", "catalog"],
        ...(payments === undefined ? {} : { payments })
      } as const
      const millrace = await createMillrace(given)
      hosts.push(millrace)
      const response = await millrace.fetch(new Request("http://localhost/api/v1/catalog/capabilities"))
      const { data } = (await response.json()) as {
        data: { capabilities: ReadonlyArray<{ key: string; availability: { available: boolean } }> }
      }
      const of = (key: string) => data.capabilities.find((capability) => capability.key === key)?.availability.available
      return [of("billing.topUp"), of("billing.subscribe")]
    }
    expect(await availableAt()).toEqual([false, false])
    expect(await availableAt({ gateway: "manual" })).toEqual([true, false])
    expect(await availableAt({ gateway: "manual", plans })).toEqual([true, true])
  })
})

describe("a host without a gateway", () => {
  it("sells nothing, and says so", async () => {
    const { millrace, post } = await open()
    expect(await post("/api/v1/billing/topups", {})).toMatchObject({ status: 503, error: { code: "upstream_not_configured" } })
    expect((await millrace.fetch(new Request("http://localhost/hooks/payments/manual", { method: "POST" }))).status).toBe(404)
    await expect(millrace.payments.list()).rejects.toMatchObject({ code: "no_gateway" })
  })

  it("is told what is wrong with its options", async () => {
    const wrong = { store: "memory:", standard: ["billing"] } as const
    const refused = (payments: unknown) => createMillrace({ ...wrong, payments } as never).catch((error: Error) => error.message)
    expect(await refused({})).toContain("payments of createMillrace needs gateway")
    expect(await refused({ gateway: "cash" })).toContain('give "manual"')
    expect(await refused({ gateway: "manual", bonus: { 7: 1 } })).toContain("there are 10, 25, 50, 100")
    expect(await refused({ gateway: "manual", lifetime: 0 })).toContain("hours, a number above 0")
  })
})
