import { Email, UpstreamUnavailable } from "@millrace/core"
import { DnsClient, DnsEmailValidator } from "@millrace/upstreams"
import { Array, Effect, Layer } from "effect"
import { describe, expect, test } from "vitest"
import {
  a,
  aaaa,
  answer,
  both,
  cname,
  mx,
  type NameServer,
  ns,
  type Reply,
  refused,
  serve,
  servfail,
  silence,
  soa,
  truncated,
  txt,
  wrongId,
  wrongName,
  type ZoneRecord,
  zone
} from "../dns/NameServer.ts"

const APEX = [ns("ns.example.com"), soa()]

/** A validator on a real client of a real name server, which knows these domains. */
const testing = <A, E>(
  names: Readonly<Record<string, ReadonlyArray<ZoneRecord> | Reply>>,
  body: (validator: Email.EmailValidator["Service"], server: NameServer) => Effect.Effect<A, E>,
  options: DnsClient.Options = {}
): Promise<A> =>
  Effect.gen(function* () {
    const server = yield* serve(zone(names))
    const client = DnsClient.layer({ servers: [server.address], attempts: 1, timeout: "10 seconds", ...options })
    const validator = yield* Layer.build(Layer.provide(DnsEmailValidator.layer, client))
    return yield* Email.EmailValidator.use((email) => body(email, server)).pipe(Effect.provide(validator))
  }).pipe(Effect.scoped, Effect.runPromise)

describe("a domain", () => {
  const mail = (name: string) => answer({ type: "MX", name, ttl: 60, data: { exchange: "mx.example.net", preference: 10 } })
  const told: Reply = (query) => (query.type === "MX" ? mail(query.name) : answer())(query)

  test.each<[string, ReadonlyArray<ZoneRecord> | Reply, boolean, number]>([
    ["with MX records", [mx("mx.example.net"), ...APEX], true, 0.9],
    ["with MX records inside a zone", [mx("mx.example.net")], true, 0.9],
    ["with MX records and an address", [mx("mx.example.net", 20), mx("mx2.example.net"), a("192.0.2.1"), ...APEX], true, 0.9],
    ["with one usable MX record beside one that is not", [mx("localhost"), mx("mx.example.net", 20), ...APEX], true, 0.9],
    ["with an IPv4 address only", [a("192.0.2.1"), ...APEX], false, 0.5],
    ["with an IPv6 address only", [aaaa("2001:db8::1"), ...APEX], false, 0.5],
    ["with neither", [txt("v=spf1 -all"), ...APEX], false, 0],
    ["without any record", [], false, 0],
    ["with a null MX", [mx(".", 0), ...APEX], false, 0],
    ["with a null MX and an address", [mx(".", 0), a("192.0.2.1"), ...APEX], false, 0],
    ["with an IP address for an MX", [mx("192.0.2.1"), a("192.0.2.1"), ...APEX], false, 0],
    ["with an alias whose target has MX records", [cname("mail.example.net")], true, 0.9],
    ["with an alias whose target has an address", [cname("www.example.net")], false, 0.5],
    ["with an alias that leads nowhere", [cname("gone.example.net")], false, 0],
    ["whose zone has no SOA", [mx("mx.example.net"), ns("ns.example.com")], true, 0.8],
    ["whose zone has no NS", [mx("mx.example.net"), soa()], true, 0.8],
    ["whose zone has an address, but no SOA", [a("192.0.2.1"), ns("ns.example.com")], false, 0.4],
    ["whose answer is too long for a datagram", truncated(told), true, 0.9],
    ["whose answer comes after lies", both(wrongId(servfail), wrongName(answer()), told), true, 0.9]
  ])("%s", (_, records, mx_records, score) =>
    testing(
      {
        "long.example.com": records,
        "mail.example.net": [mx("mx.example.net"), ...APEX],
        "www.example.net": [a("192.0.2.1")]
      },
      Effect.fnUntraced(function* ({ validate }) {
        expect(yield* validate({ email: "ada@Long.Example.Com", consensus: false })).toEqual({
          email: "ada@Long.Example.Com",
          valid: score > 0,
          disposable: false,
          domain: "long.example.com",
          syntax_valid: true,
          mx_records,
          score
        })
      })
    )
  )

  test("that does not exist accepts no mail", () =>
    testing(
      {},
      Effect.fnUntraced(function* ({ validate }, { queries }) {
        const report = yield* validate({ email: "info@nowhere.example.com", consensus: true })
        expect(report).toMatchObject({ valid: false, disposable: false, syntax_valid: true, mx_records: false, score: 0 })
        expect(queries.map(({ type }) => type)).toEqual(["MX"])
      })
    ))

  test.each<[string, Reply, DnsClient.Options]>([
    ["fails", servfail, {}],
    ["refuses", refused, {}],
    ["is silent", silence, { timeout: "1 second" }],
    ["answers another question", wrongId(answer()), { timeout: "1 second" }],
    ["goes in circles", (query) => answer({ type: "CNAME", name: query.name, ttl: 60, data: query.name })(query), {}],
    ["fails to tell of NS", (query) => (query.type === "NS" ? servfail : mail(query.name))(query), {}]
  ])("has no verdict if its name server %s, and others of the batch have one", (_, reply, options) =>
    testing(
      { "broken.example.com": reply, "example.com": [mx("mx.example.net"), ...APEX] },
      Effect.fnUntraced(function* ({ validate, validateAll }) {
        const alone = yield* Effect.flip(validate({ email: "ada@broken.example.com", consensus: false }))
        const emails = ["ada@example.com", "ada@broken.example.com", "ada@nowhere.example.com"]
        const together = yield* validateAll({ emails, consensus: true })
        const failures = Array.getFailures(together)
        expect(Array.getSuccesses(together).map(({ email }) => email)).toEqual(["ada@example.com", "ada@nowhere.example.com"])
        expect(failures).toHaveLength(1)
        for (const error of [alone, ...failures]) {
          expect(error).toBeInstanceOf(UpstreamUnavailable)
          expect(error.isolated).toBe(true)
          expect(error.reason).not.toContain("ada")
        }
      }),
      options
    )
  )

  test("is queried once for a batch of 50, with any cache", () =>
    testing(
      { "example.com": [mx("mx.example.net"), ...APEX] },
      Effect.fnUntraced(function* ({ validateAll }, { queries }) {
        const emails = Array.makeBy(50, (n) => `ada${n}@example.com`)
        const reports = yield* validateAll({ emails, consensus: false })
        expect(Array.getSuccesses(reports).map(({ email, score }) => [email, score])).toEqual(emails.map((email) => [email, 0.9]))
        expect(queries.map(({ type }) => type).sort()).toEqual(["MX", "NS", "SOA"])
      }),
      { cacheEntries: 0 }
    ))
})

describe("an address", () => {
  test.each([
    ["info@example.com", true, 0.75, false],
    ["No-Reply+x@example.com", true, 0.75, false],
    ["ada@mailinator.com", true, 0.1, true],
    ["info@any.mailinator.com", true, 0.1, true],
    ["ada@mozmail.com", true, 0.9, false],
    ["ada@guerrillamail.com", false, 0, true]
  ])("%s", (email, valid, score, disposable) =>
    testing(
      {
        "example.com": [mx("mx.example.net"), ...APEX],
        "mailinator.com": [mx("mx.example.net"), ...APEX],
        "any.mailinator.com": [a("192.0.2.1")],
        "mozmail.com": [mx("mx.example.net"), ...APEX]
      },
      Effect.fnUntraced(function* ({ validate }) {
        expect(yield* validate({ email, consensus: true })).toMatchObject({ email, valid, score, disposable })
      })
    )
  )
})
