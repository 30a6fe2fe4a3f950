import { generateKeyPairSync } from "node:crypto"
import type { Authentication } from "@millrace/core"
import { DnsClient } from "@millrace/upstreams"
import { MailVerdicts } from "@millrace/upstreams/mail"
import { Context, Effect, Fiber, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { createTransport, type SendMailOptions } from "nodemailer"
import { describe, expect, test } from "vitest"
import * as NameServer from "../dns/NameServer.ts"
import { ANNA, serve } from "./Host.ts"
import * as Mailboxes from "./Mailboxes.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 })
const dkim = { domainName: "shop.test", keySelector: "k1", privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString() }
const key = publicKey.export({ type: "spki", format: "der" }).toString("base64")

const allowed = NameServer.txt("v=spf1 ip4:127.0.0.1 -all")

/** The zone of a sender that has set everything up. */
const shop: Readonly<Record<string, ReadonlyArray<NameServer.ZoneRecord> | NameServer.Reply>> = {
  "shop.test": [allowed, NameServer.mx("mx.shop.test")],
  "mx.shop.test": [NameServer.a("127.0.0.1")],
  "k1._domainkey.shop.test": [NameServer.txt([`v=DKIM1; k=rsa; p=${key.slice(0, 200)}`, key.slice(200)])],
  "_dmarc.shop.test": [NameServer.txt("v=DMARC1; p=reject")]
}

const verdictsOf = (zone: typeof shop, options: MailVerdicts.Options = {}) =>
  Effect.gen(function* () {
    const server = yield* NameServer.serve(NameServer.zone(zone))
    const dns = DnsClient.layer({ servers: [server.address], withheld: [], attempts: 1 })
    return Layer.succeedContext(yield* Layer.build(MailVerdicts.layer(options).pipe(Layer.provide(dns))))
  })

/** What the server says of a message that nodemailer sends. */
const verdicts = (zone: typeof shop, mail: SendMailOptions) =>
  Effect.gen(function* () {
    const mailboxes = Mailboxes.make([ANNA])
    const { port } = yield* serve(mailboxes, {}, yield* verdictsOf(zone))
    const transport = createTransport({ host: "127.0.0.1", port, secure: false, name: "client.shop.test" })
    yield* Effect.promise(() => transport.sendMail({ from: "Shop <a@shop.test>", to: ANNA, subject: "Hi", text: "Hi", ...mail }))
    return mailboxes.taken.get(ANNA)?.[0]?.authentication
  })

interface Case {
  readonly name: string
  readonly zone: typeof shop
  readonly mail?: SendMailOptions
  readonly unsigned?: boolean
  readonly expected: Authentication
}

describe("verdicts", () => {
  const pass: Authentication = { spf: "pass", dkim: "pass", dmarc: "pass", arc: "none" }

  const cases: ReadonlyArray<Case> = [
    { name: "signed, and from an allowed address", zone: shop, expected: pass },
    {
      name: "allowed by the mail exchange",
      zone: { ...shop, "shop.test": [NameServer.txt("v=spf1 mx -all"), NameServer.mx("mx.shop.test")] },
      expected: pass
    },
    ...["k0", "k2"].map((keySelector) => ({
      name: `signed twice, once by the key ${keySelector} that nobody knows`,
      zone: shop,
      mail: { dkim: { keys: [dkim, { ...dkim, keySelector }].sort((a, b) => (a.keySelector < b.keySelector ? -1 : 1)) } },
      expected: pass
    })),
    {
      name: "not signed",
      zone: shop,
      unsigned: true,
      expected: { ...pass, dkim: "none" }
    },
    { name: "from another address", zone: { ...shop, "shop.test": [NameServer.txt("v=spf1 -all")] }, expected: { ...pass, spf: "fail" } },
    {
      name: "from another address and not signed",
      zone: { ...shop, "shop.test": [NameServer.txt("v=spf1 -all")] },
      unsigned: true,
      expected: { spf: "fail", dkim: "none", dmarc: "fail", arc: "none" }
    },
    {
      name: "in the name of another domain",
      zone: { ...shop, "_dmarc.bank.test": [NameServer.txt("v=DMARC1; p=reject")], "bank.test": [] },
      mail: { from: "bank@bank.test", envelope: { from: "a@shop.test", to: ANNA } },
      expected: { ...pass, dmarc: "fail" }
    },
    {
      name: "of a domain that says nothing",
      zone: { "shop.test": [] },
      unsigned: true,
      expected: { spf: "none", dkim: "none", dmarc: "none", arc: "none" }
    },
    {
      name: "a bounce, judged by HELO",
      zone: { ...shop, "client.shop.test": [allowed] },
      mail: { envelope: { from: "", to: ANNA } },
      expected: pass
    }
  ]

  test.each(cases)("$name", ({ zone, mail, unsigned, expected }) =>
    run(
      Effect.gen(function* () {
        expect(yield* verdicts(zone, { ...(unsigned ? {} : { dkim }), ...mail })).toEqual(expected)
      })
    )
  )

  test.each(["shop.test", "k1._domainkey.shop.test", "_dmarc.shop.test"])(
    "temperror where DNS fails for %s; the message is taken",
    (name) =>
      run(
        Effect.gen(function* () {
          const field = { "shop.test": "spf", "k1._domainkey.shop.test": "dkim", "_dmarc.shop.test": "dmarc" }[name] ?? ""
          expect(yield* verdicts({ ...shop, [name]: NameServer.servfail }, { dkim })).toEqual({ ...pass, [field]: "temperror" })
        })
      )
  )

  const signed = "DKIM-Signature: v=1; a=rsa-sha256; d=shop.test; s=k1; h=from; bh=AAAA; b=AAAA\r\n"
  const received = (raw: string): MailVerdicts.Received => ({
    raw: Buffer.from(raw),
    ip: "127.0.0.1",
    helo: "client.shop.test",
    sender: "a@shop.test"
  })

  test("temperror for all once the time is over", () =>
    run(
      Effect.gen(function* () {
        const server = yield* NameServer.serve(NameServer.zone({ ...shop, "k1._domainkey.shop.test": NameServer.silence }))
        const dns = DnsClient.layer({ servers: [server.address], withheld: [], timeout: "1 minute", timeLimit: "1 minute" })
        const service = Context.get(yield* Layer.build(MailVerdicts.layer().pipe(Layer.provide(dns))), MailVerdicts.MailVerdicts)
        const checked = yield* Effect.forkChild(service.check(received(`${signed}From: a@shop.test\r\n\r\nHi\r\n`)))
        yield* server.received
        yield* TestClock.adjust("8 seconds")
        const temperror = { spf: "temperror", dkim: "temperror", dmarc: "temperror", arc: "temperror" }
        expect(yield* Fiber.join(checked)).toEqual(temperror)
      })
    ))

  test.each([
    { name: "12 signatures", raw: signed.repeat(12), spf: "pass" },
    { name: "13 signatures", raw: signed.repeat(13), spf: null },
    { name: "10 MiB of base64, signed", raw: `${signed}\r\n${`${"x".repeat(76)}\r\n`.repeat(134_000)}`, spf: "pass" },
    { name: "2 MB of empty lines", raw: `\r\n${"\r\n".repeat(1_000_000)}`, spf: "pass" },
    { name: "2 MB of empty lines, signed", raw: `${signed}\r\n${"\r\n".repeat(1_000_000)}`, spf: null },
    { name: "a line of 10 MiB, signed thrice", raw: `${signed.repeat(3)}\r\n${"x".repeat(10_485_000)}\r\n`, spf: null },
    { name: "250 kB of headers", raw: `X: ${"x".repeat(250_000)}\r\n`, spf: "pass" },
    { name: "300 kB of headers", raw: `X: ${"x".repeat(300_000)}\r\n`, spf: null },
    { name: "1,900 lines of headers", raw: `X: x${"\r\n x".repeat(1_900)}\r\n`, spf: "pass" },
    { name: "2,100 lines of headers", raw: `X: x${"\r\n x".repeat(2_100)}\r\n`, spf: null }
  ])("$name: spf $spf", ({ raw, spf }) =>
    run(
      Effect.gen(function* () {
        const service = Context.get(yield* Layer.build(yield* verdictsOf(shop)), MailVerdicts.MailVerdicts)
        expect(yield* service.check(received(`From: a@shop.test\r\n${raw}`))).toMatchObject({ spf })
      })
    )
  )

  test.each([
    "",
    "\0",
    "From: a@shop.test",
    `${signed}\r\n`,
    `From: ${"<".repeat(10_000)}\r\n\r\n`,
    "From: a@shop.test\r\nFrom: b@bank.test\r\n\r\n"
  ])("no message breaks it: %j", (raw) =>
    run(
      Effect.gen(function* () {
        const service = Context.get(yield* Layer.build(yield* verdictsOf(shop)), MailVerdicts.MailVerdicts)
        expect(yield* service.check(received(raw))).toMatchObject({ spf: "pass" })
      })
    )
  )
})
