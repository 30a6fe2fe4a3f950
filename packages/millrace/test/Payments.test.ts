/** Payments by the command line, while two servers run on the same store: whichever is asked, a payment is one, and grants once. */
import { Schema } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { auditOf, Balance, call, newStore, Opened, openAccount, type Server, serve, UNLIMITED } from "../../../test/system/Server.ts"

const Shown = Schema.Struct({
  ...{ payment: Schema.String, account: Schema.String, status: Schema.String, amount: Schema.Finite, currency: Schema.String },
  ...{ credits: Schema.Finite, bonus: Schema.Finite, gateway: Schema.String, reference: Schema.NullOr(Schema.String) },
  ...{
    reason: Schema.NullOr(Schema.String),
    returned: Schema.Finite,
    refundsFailed: Schema.Int,
    disputes: Schema.Int,
    expiresAt: Schema.String
  }
})

const ToppedUp = Schema.Struct({
  data: Schema.Struct({
    ...{ payment_id: Schema.String, status: Schema.String, credits: Schema.Finite, bonus_credits: Schema.Finite },
    instruction: Schema.optionalKey(Schema.String)
  })
})

let store = { folder: "", file: "", url: "" }
let servers: readonly [Server, Server]
let account = ""
let key = ""

const ask = async <A>(shape: Schema.Codec<A, unknown>, ...args: ReadonlyArray<string>): Promise<A> => {
  const { code, stderr, stdout } = await millrace([...args, "--store", store.url])
  expect([code, stderr]).toEqual([0, ""])
  return Schema.decodeUnknownSync(shape, { onExcessProperty: "error" })(JSON.parse(stdout))
}

const refused = async (...args: ReadonlyArray<string>) => (await millrace([...args, "--store", store.url])).stderr

const post = async ({ url }: Server, path: string, more: { readonly body?: string; readonly headers?: Record<string, string> } = {}) => {
  const { body, status } = await call(`${url}/api/v1/billing/topups${path}`, { method: "POST", key, ...more })
  return status === 200 ? Schema.decodeUnknownSync(ToppedUp)(JSON.parse(body)).data : Promise.reject(new Error(`${status}`))
}

const available = async () => (await ask(Balance, "balance", "--account", account)).available

beforeAll(async () => {
  store = newStore()
  const flags = [
    "--store",
    store.url,
    "--payments",
    "manual",
    "--topup-bonus",
    "50=5000",
    "--payment-instruction",
    "Send {amount} {currency}"
  ]
  const first = await serve(flags, { env: UNLIMITED })
  servers = [first, await serve(flags, { env: UNLIMITED })]
  const opened = await ask(Opened, "accounts", "open", "--email", "ada@example.com")
  account = opened.account
  key = opened.key
}, 60_000)

describe("a payment at two servers", () => {
  it("is requested once under a key, listed, approved, captured, and given back once under an id", async () => {
    const [one, other] = servers
    const json = { "content-type": "application/json", "idempotency-key": "first" }
    const asked = { body: '{"pack":"50"}', headers: json }
    const [here, there] = [await post(one, "", asked), await post(other, "", asked)]
    expect(there).toEqual(here)
    expect(here).toMatchObject({ status: "pending", credits: 50_000, bonus_credits: 5_000, instruction: "Send 50.00 USD" })
    const id = here.payment_id
    expect((await post(other, `/${id}/capture`)).status).toBe("pending")
    const [listed] = await ask(Schema.Array(Shown), "payments", "list", "--status", "pending", "--account", account)
    expect(listed).toMatchObject({ payment: id, account, amount: 50, gateway: "manual" })
    expect(await ask(Shown, "payments", "approve", id, "--by", "grace")).toMatchObject({ status: "captured" })
    expect(await available()).toBe(55_000)
    const captured = await Promise.all([one, other, one, other].map((server) => post(server, `/${id}/capture`)))
    expect(captured.map(({ status }) => status)).toEqual(["captured", "captured", "captured", "captured"])
    expect(await available()).toBe(55_000)
    for (const _ of [1, 2])
      expect(await ask(Shown, "payments", "refund", id, "--money", "12.5", "--id", "r1")).toMatchObject({ returned: 12.5 })
    expect(await available()).toBe(42_500)
    expect(await ask(Shown, "payments", "refund", id)).toMatchObject({ status: "refunded", returned: 50 })
    expect(await refused("payments", "refund", id)).toContain("at most 0.00 USD")
    expect(await ask(Shown, "payments", "show", id)).toMatchObject({ status: "refunded" })
  }, 60_000)

  it("is rejected with a reason, and not approved afterwards", async () => {
    const { payment_id: id } = await post(servers[0], "")
    expect(await ask(Shown, "payments", "reject", id, "--why", "No money came")).toMatchObject({
      status: "failed",
      reason: "No money came"
    })
    expect(await post(servers[1], `/${id}/capture`)).toMatchObject({ status: "failed" })
    expect(await refused("payments", "approve", id)).toContain("was rejected already")
    expect(await refused("payments", "show", "pay_none")).toContain("no payment pay_none")
    expect(await refused("credits", "grant", "--account", account, "--amount", "1", "--source", "topup", "--payment-ref", id)).toContain(
      "is made here"
    )
  }, 60_000)

  it("is one of at most 20 that are pending, of many that are asked for at once", async () => {
    const [server] = servers
    const other = await openAccount(store.url, 1)
    const asked = await Promise.all(
      Array.from({ length: 30 }, () => call(`${server.url}/api/v1/billing/topups`, { method: "POST", key: other.key, body: "{}" }))
    )
    expect(asked.filter(({ status }) => status === 200)).toHaveLength(20)
    const refused = asked.filter(({ status }) => status !== 200)
    for (const { body, headers, status } of refused) {
      expect([status, JSON.parse(body).error.code, headers["retry-after"]]).toEqual([429, "too_many_payments", "60"])
      expect(JSON.parse(body).error.message).toBe("20 payments of this account are pending. Pay one of them, or wait until they lapse.")
    }
    const [open] = await ask(Schema.Array(Shown), "payments", "list", "--account", other.account, "--status", "pending", "--limit", "1")
    await ask(Shown, "payments", "reject", open?.payment ?? "", "--why", "No money came")
    const again = await call(`${server.url}/api/v1/billing/topups`, { method: "POST", key: other.key, body: "{}" })
    expect(again.status).toBe(200)
  })

  it("passes the audit", async () => {
    expect((await auditOf(store.url)).problems).toEqual([])
  }, 60_000)
})

it("a server is told what is wrong with its settings", async () => {
  const wrong = (...flags: ReadonlyArray<string>) => refused("serve", ...flags)
  expect(await wrong("--payments", "cash")).toContain("--payments or MILLRACE_PAYMENTS")
  expect(await wrong("--payments", "manual", "--topup-bonus", "7=1")).toContain("--topup-bonus or MILLRACE_TOPUP_BONUS")
  expect(await wrong("--payments", "manual", "--payment-tax", "VAT 101% DE")).toContain("--payment-tax or MILLRACE_PAYMENT_TAX")
  expect(await wrong("--payments", "manual", "--invoice-seller", " ")).toContain("--invoice-seller or MILLRACE_INVOICE_SELLER")
  expect(await wrong("--payments", "manual", "--payment-lifetime", "0")).toContain("--payment-lifetime or MILLRACE_PAYMENT_LIFETIME")
})
