/** What the doctor finds of sign-up by mail and of payments: what is there, what it needs, and what a real relay says to it. */
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { ConfigProvider, Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { newStore } from "../../../test/system/Server.ts"
import * as SelfSigned from "../../upstreams/test/mail/SelfSigned.ts"
import * as CustomerChecks from "../src/CustomerChecks.ts"
import * as Relay from "./Relay.ts"

/** Each check as its name, whether it is ok, what it found, and its advice. */
const checksBy = (env: Readonly<Record<string, string>>) =>
  Effect.provideService(CustomerChecks.checks, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })).pipe(
    Effect.map((checks) =>
      Object.fromEntries(checks.map(({ advice = "", detail, name, ok }) => [name, `${ok ? "ok" : "WRONG"} ${detail} -> ${advice}`]))
    )
  )

const examine = (env: Readonly<Record<string, string>>) => Effect.runPromise(checksBy(env))

const certificate = SelfSigned.make()
const trusted = getCACertificates("default")
afterEach(() => setDefaultCACertificates(trusted))

/** What the doctor says of a relay of a test, and which commands came there. */
const examineRelay = (
  options: Relay.Options,
  credentials = "",
  env: Readonly<Record<string, string>> = { MILLRACE_PUBLIC_URL: "https://api.example.com" }
) =>
  Effect.gen(function* () {
    const { commands, port } = yield* Relay.listen(options)
    const told = yield* checksBy({ ...env, MILLRACE_MAIL_RELAY: `smtp://${credentials}127.0.0.1:${port}` })
    expect(JSON.stringify(told)).not.toMatch(/canary|s3cret/u)
    return { told: told["mail relay"]?.replace(String(port), "PORT"), commands }
  }).pipe(Effect.scoped, Effect.runPromise)

describe("without settings", () => {
  it("says what is missing, and what it needs", async () => {
    expect(await examine({})).toEqual({
      "public URL": "ok links in mails lead to where the server listens -> set MILLRACE_PUBLIC_URL: where people reach it",
      "mail relay":
        "ok none: nobody signs up or signs in by mail, and there are no price alerts -> set MILLRACE_MAIL_RELAY: smtp://name:password@relay.example.com:587, or print to try it out",
      payments: "ok credits cannot be bought here -> set MILLRACE_PAYMENTS: manual, stripe or paypal",
      plans: "ok none: nobody subscribes -> set MILLRACE_PLANS: file|json"
    })
  })
})

describe("the operations that sell credits", () => {
  const PLANS = '{"standard":{"price":20,"credits":25000,"period":"month"}}'
  const needs = async (env: Readonly<Record<string, string>>) => {
    const { stdout } = await millrace(["doctor", "--json", "--store", "sqlite:/nowhere/none.db"], { env })
    const { checks } = JSON.parse(stdout) as { readonly checks: ReadonlyArray<{ readonly name: string; readonly advice?: string }> }
    const advice = checks.find(({ name }) => name === "upstreams")?.advice ?? ""
    return advice.split("; ").filter((clause) => clause.includes("billing."))
  }

  it("have their provider where the environment sets it up", async () => {
    expect(await needs({})).toEqual([expect.stringMatching(/billing\.topUp.*billing\.subscribe: MILLRACE_PAYMENTS$/u)])
    expect(await needs({ MILLRACE_PAYMENTS: "manual" })).toEqual([expect.stringMatching(/says: billing\.subscribe: MILLRACE_PLANS$/u)])
    expect(await needs({ MILLRACE_PAYMENTS: "manual", MILLRACE_PLANS: PLANS })).toEqual([])
    // Without its keys, it takes no payments
    expect(await needs({ MILLRACE_PAYMENTS: "stripe" })).toEqual([expect.stringContaining("MILLRACE_PAYMENTS")])
  })
})

describe("a public URL", () => {
  it.each([
    ["https://api.example.com", "ok links in mails lead to https://api.example.com/ -> "],
    ["http://127.0.0.1:8787", "ok links in mails lead to http://127.0.0.1:8787/ -> "],
    ["http://api.example.com", "WRONG http://api.example.com/ is not https -> serve it by https"],
    ["https://ada:s3cret@api.example.com", "WRONG MILLRACE_PUBLIC_URL must be an address such as"]
  ])("%s", async (url, told) => {
    const all = await examine({ MILLRACE_PUBLIC_URL: url })
    expect(all["public URL"]).toContain(told)
    expect(JSON.stringify(all)).not.toContain("s3cret")
  })
})

describe("a mail relay", () => {
  it("is asked, and lets in without a name", async () => {
    const { commands, told } = await examineRelay({})
    expect(told).toBe("ok smtp://127.0.0.1:PORT lets this host in, without a name; mails come from no-reply@api.example.com -> ")
    expect(commands[0]).toBe("EHLO")
    expect(commands).not.toContain("MAIL")
  })

  it("is asked over TLS with its name and password", async () => {
    setDefaultCACertificates([...trusted, certificate.cert])
    const { commands, told } = await examineRelay({ tls: certificate, credentials: "\0name\0canary" }, "name:canary@")
    expect(told).toMatch(/^ok smtp:\/\/127\.0\.0\.1:PORT lets this host in, by name and password over TLS;/u)
    expect(commands.slice(0, 4)).toEqual(["EHLO", "STARTTLS", "EHLO", "AUTH"])
  })

  it("that does not know the password is wrong", async () => {
    setDefaultCACertificates([...trusted, certificate.cert])
    const { told } = await examineRelay({ tls: certificate, credentials: "\0name\0other" }, "name:canary@")
    expect(told).toBe(
      "WRONG smtp://127.0.0.1:PORT did not answer as a relay must: EAUTH 535 -> set the name and the password that it knows in MILLRACE_MAIL_RELAY"
    )
  })

  it("without TLS, or whose certificate nobody trusts, gets no password", async () => {
    for (const options of [{ credentials: "\0name\0canary" }, { tls: certificate, credentials: "\0name\0canary" }]) {
      const { commands, told } = await examineRelay(options, "name:canary@")
      expect(told).toMatch(/^WRONG smtp:\/\/127\.0\.0\.1:PORT did not answer as a relay must: E/u)
      expect(commands).not.toContain("AUTH")
    }
  })

  it("that is not there, or has no sender, is wrong", async () => {
    const closed = await Effect.runPromise(Effect.scoped(Effect.map(Relay.listen(), ({ port }) => port)))
    const { "mail relay": told } = await examine({
      MILLRACE_MAIL_RELAY: `smtp://127.0.0.1:${closed}`,
      MILLRACE_MAIL_FROM: "no-reply@example.com"
    })
    expect(told).toMatch(/^WRONG smtp:\/\/127\.0\.0\.1:\d+ did not answer as a relay must: E/u)
    expect((await examineRelay({}, "", {})).told).toContain("WRONG mails would come from no-reply@localhost -> set MILLRACE_MAIL_FROM")
  })

  it.each([
    ["http://name:canary@relay.example.com", "WRONG MILLRACE_MAIL_RELAY must be print, or a relay such as"],
    ["print", "ok mails are printed"]
  ])("%s", async (relay, told) => {
    const all = await examine({ MILLRACE_MAIL_RELAY: relay })
    expect(all["mail relay"]).toContain(told)
    expect(JSON.stringify(all)).not.toContain("canary")
  })
})

const STRIPE = { MILLRACE_PAYMENTS: "stripe", MILLRACE_STRIPE_KEY: "sk_live_s3cret", MILLRACE_STRIPE_WEBHOOK_SECRET: "whsec_s3cret" }
const PAYPAL = {
  MILLRACE_PAYMENTS: "paypal",
  MILLRACE_PAYPAL_CLIENT_ID: "id",
  MILLRACE_PAYPAL_CLIENT_SECRET: "s3cret",
  MILLRACE_PAYPAL_WEBHOOK_ID: "webhook",
  MILLRACE_PUBLIC_URL: "https://api.example.com"
}
const PLANS = '{"standard":{"price":20,"credits":25000,"period":"month"}}'

/** Without a variable. */
const omit = (env: Readonly<Record<string, string>>, name: string) =>
  Object.fromEntries(Object.entries(env).filter(([key]) => key !== name))

describe("payments", () => {
  it.each<[string, Readonly<Record<string, string>>, string]>([
    ["payments", { MILLRACE_PAYMENTS: "manual" }, "ok operators confirm payments: millrace payments approve -> "],
    ["payments", { MILLRACE_PAYMENTS: "cash" }, "WRONG MILLRACE_PAYMENTS must be manual, stripe, paypal"],
    ["payments", STRIPE, "ok stripe has its keys, and the secret of its webhook at /hooks/payments/stripe -> "],
    [
      "payments",
      { ...STRIPE, MILLRACE_STRIPE_KEY: "sk_test_s3cret" },
      "ok stripe has its keys, and the secret of its webhook at /hooks/payments/stripe -> the key is for tests"
    ],
    ["payments", { ...STRIPE, MILLRACE_STRIPE_KEY: "pk_live_s3cret" }, "WRONG MILLRACE_STRIPE_KEY must be a secret (sk_)"],
    [
      "payments",
      { ...STRIPE, MILLRACE_STRIPE_WEBHOOK_SECRET: "s3cret" },
      "WRONG MILLRACE_STRIPE_WEBHOOK_SECRET must be the signing secret"
    ],
    ["payments", omit(STRIPE, "MILLRACE_STRIPE_KEY"), "WRONG payments by stripe need MILLRACE_STRIPE_KEY"],
    ["payments", omit(STRIPE, "MILLRACE_STRIPE_WEBHOOK_SECRET"), "WRONG payments by stripe need MILLRACE_STRIPE_WEBHOOK_SECRET"],
    ["payments", PAYPAL, "ok paypal has its keys, and the secret of its webhook at /hooks/payments/paypal -> "],
    ...Object.keys(omit(PAYPAL, "MILLRACE_PAYMENTS")).map((name): [string, Readonly<Record<string, string>>, string] => [
      "payments",
      omit(PAYPAL, name),
      name
    ]),
    ["payments", { MILLRACE_PAYMENTS: "manual", MILLRACE_TOPUP_BONUS: "7=1" }, "WRONG MILLRACE_TOPUP_BONUS must be packs and credits"],
    ["plans", { MILLRACE_PAYMENTS: "manual", MILLRACE_PLANS: PLANS }, "ok standard -> "],
    ["plans", { MILLRACE_PLANS: PLANS }, "WRONG standard, and nothing takes payments -> set MILLRACE_PAYMENTS"],
    ["plans", { MILLRACE_PAYMENTS: "manual", MILLRACE_PLANS: '{"standard":{"price":0}}' }, "WRONG MILLRACE_PLANS must be plans by name"]
  ])("%s by %j: %s", async (name, env, told) => {
    const all = await examine(env)
    expect(all[name]).toContain(told)
    expect(JSON.stringify(all)).not.toContain("s3cret")
  })
})

it("the command shows these checks, and fails with a relay that does not answer", async () => {
  const closed = await Effect.runPromise(Effect.scoped(Effect.map(Relay.listen(), ({ port }) => port)))
  const env = { MILLRACE_MAIL_RELAY: `smtps://name:canary@127.0.0.1:${closed}`, MILLRACE_PUBLIC_URL: "https://api.example.com" }
  const { code, stdout } = await millrace(["doctor", "--store", newStore().url], { env })
  expect(code).toBe(1)
  expect(stdout).not.toContain("canary")
  const { checks } = JSON.parse(stdout) as { checks: ReadonlyArray<{ name: string; ok: boolean; detail: string }> }
  expect(checks.find(({ name }) => name === "mail relay")).toMatchObject({
    ok: false,
    detail: expect.stringContaining("smtps://127.0.0.1:")
  })
})
