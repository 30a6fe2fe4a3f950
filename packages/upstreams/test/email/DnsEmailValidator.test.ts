import { Dns, Email, NotFound, UpstreamUnavailable } from "@millrace/core"
import { DnsEmailValidator } from "@millrace/upstreams"
import { Array, Deferred, Effect, Fiber, Layer, Result } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"

type Resolver = (typeof Dns.DnsResolver)["Service"]
type Query = Parameters<Resolver["resolve"]>[0]
type Zones = Readonly<Record<string, ReadonlyArray<Dns.DnsRecord & { readonly type: Dns.RecordType }>>>

const mx = (exchange: string) => ({ type: "MX", ttl: 60, exchange, priority: 10 }) as const
const a = { type: "A", ttl: 60, ip: "192.0.2.1" } as const

const failure = new UpstreamUnavailable({ upstream: "dns", reason: "SERVFAIL" })

/** Answers from these zones, and notes what it was asked. */
const resolving = (zones: Zones) => {
  const queries: Array<Query> = []
  const resolve: Resolver["resolve"] = ({ domain, type }) =>
    Effect.suspend(() => {
      queries.push({ domain, type })
      const zone = zones[domain]
      if (zone === undefined) return Effect.fail(new NotFound({ resource: "domain" }))
      return Effect.succeed({ domain, type, records: zone.filter((record) => record.type === type) })
    })
  return { queries, resolve }
}

const testing = <A, E>(
  resolve: Resolver["resolve"],
  body: (validator: Email.EmailValidator["Service"]) => Effect.Effect<A, E>
): Promise<A> =>
  Effect.runPromise(
    Email.EmailValidator.use(body).pipe(
      Effect.provide(DnsEmailValidator.layer.pipe(Layer.provide(Layer.succeed(Dns.DnsResolver, { resolve }))))
    )
  )

const ZONES: Zones = {
  "example.com": [mx("mail.example.com")],
  "address.example": [a],
  "nothing.example": [],
  "mailinator.com": [mx("mail.mailinator.com")],
  "passmail.net": [mx("mail.passmail.net")],
  "duck.com": [mx("mail.duck.com")],
  "xn--mnchen-3ya.de": [mx("mail.xn--mnchen-3ya.de")]
}

const numbered = (count: number, of: (n: number) => string) => Array.makeBy(count, of)

describe("queries of DNS", () => {
  test("are not made for malformed addresses", async () => {
    const { queries, resolve } = resolving(ZONES)
    const report = await testing(resolve, ({ validate }) => validate({ email: "Ada Lovelace@Mailinator.COM", consensus: true }))
    expect(report).toEqual({
      email: "Ada Lovelace@Mailinator.COM",
      valid: false,
      disposable: false,
      domain: "mailinator.com",
      syntax_valid: false,
      mx_records: false,
      score: 0
    })
    expect(queries).toEqual([])
  })

  test("end as soon as mail is known to be undeliverable", async () => {
    const { queries, resolve } = resolving({ "null.example": [mx("."), a] })
    await testing(resolve, ({ validateAll }) => validateAll({ emails: ["ada@null.example", "ada@nowhere.example"], consensus: false }))
    expect(queries).toEqual([
      { domain: "null.example", type: "MX" },
      { domain: "nowhere.example", type: "MX" }
    ])
  })

  test("contain nothing of an address but its domain", async () => {
    const { queries, resolve } = resolving(ZONES)
    await testing(resolve, ({ validate }) => validate({ email: "ada@Address.Example", consensus: false }))
    expect(queries).toEqual(["MX", "A", "NS", "SOA"].map((type) => ({ domain: "address.example", type })))
  })

  test("are made once for 50 addresses of one domain", async () => {
    const { queries, resolve } = resolving(ZONES)
    const emails = numbered(50, (n) => `ada${n}@${n % 2 === 0 ? "MÜNCHEN.de" : "xn--mnchen-3ya.DE"}`)
    const reports = await testing(resolve, ({ validateAll }) => validateAll({ emails, consensus: false }))
    expect(Array.getSuccesses(reports).map(({ email, domain, score }) => ({ email, domain, score }))).toEqual(
      emails.map((email) => ({ email, domain: "xn--mnchen-3ya.de", score: 0.9 }))
    )
    expect(queries).toEqual(["MX", "NS", "SOA"].map((type) => ({ domain: "xn--mnchen-3ya.de", type })))
  })

  test("are made for fifty domains at a time", () => {
    const asked = new Set<string>()
    const full = Deferred.makeUnsafe<void>()
    const open = Deferred.makeUnsafe<void>()
    const { resolve } = resolving({})
    const waiting: Resolver["resolve"] = (query) =>
      Effect.suspend(() => {
        asked.add(query.domain)
        return Effect.andThen(
          Effect.andThen(asked.size === 50 ? Deferred.succeed(full, undefined) : Effect.void, Deferred.await(open)),
          resolve(query)
        )
      })
    return testing(
      waiting,
      Effect.fnUntraced(function* ({ validateAll }) {
        const all = yield* Effect.forkChild(validateAll({ emails: numbered(60, (n) => `ada@${n}.example.com`), consensus: false }))
        yield* Deferred.await(full)
        for (let turns = 0; turns < 100; turns++) yield* Effect.yieldNow
        expect(asked.size).toBe(50)
        yield* Deferred.succeed(open, undefined)
        expect(Array.getSuccesses(yield* Fiber.join(all)).map(({ valid }) => valid)).toEqual(Array.replicate(false, 60))
        expect(asked.size).toBe(60)
      })
    )
  })
})

describe("a failure of DNS", () => {
  test.each(["MX", "A", "AAAA", "NS", "SOA"])("is no verdict: %s", async (type) => {
    const { resolve } = resolving({ "example.com": type === "MX" || type === "A" || type === "AAAA" ? [] : [mx("mail.example.com")] })
    const failing: Resolver["resolve"] = (query) => (query.type === type ? Effect.fail(failure) : resolve(query))
    const request = { email: "ada@example.com", consensus: false }
    expect(await testing(failing, ({ validate }) => Effect.flip(validate(request)))).toBe(failure)
  })

  test("affects only the addresses of its domain", async () => {
    const { resolve } = resolving(ZONES)
    const failing: Resolver["resolve"] = (query) => (query.domain === "broken.example" ? Effect.fail(failure) : resolve(query))
    const emails = ["ada@example.com", "ada@broken.example", "two words", "bob@broken.example", "ada@duck.com"]
    const reports = await testing(failing, ({ validateAll }) => validateAll({ emails, consensus: false }))
    expect(reports.map((report) => (Result.isSuccess(report) ? report.success.email : report.failure))).toEqual([
      "ada@example.com",
      failure,
      "two words",
      failure,
      "ada@duck.com"
    ])
  })
})

describe("many addresses", () => {
  test("are reported in order, each as if it were alone, also duplicates", async () => {
    const { resolve } = resolving(ZONES)
    const local = fc.constantFrom("ada", "Info", "sales+x", "two words", '"two words"')
    const domain = fc.constantFrom(...Object.keys(ZONES), "Example.COM", "sub.mailinator.com", "nowhere.example", "localhost", "münchen.de")
    const emails = fc.array(
      fc.tuple(local, domain).map((parts) => parts.join("@")),
      { maxLength: 12 }
    )
    await testing(resolve, ({ validate, validateAll }) =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(emails, fc.boolean(), async (emails, consensus) => {
            const together = Array.getSuccesses(await Effect.runPromise(validateAll({ emails, consensus })))
            const alone = await Effect.runPromise(Effect.forEach(emails, (email) => validate({ email, consensus })))
            expect(together).toEqual(alone)
            expect(together.map(({ email }) => email)).toEqual(emails)
            for (const { valid, score, syntax_valid, mx_records } of together) {
              expect(valid).toBe(score > 0)
              expect(valid && !syntax_valid).toBe(false)
              expect(mx_records && !valid).toBe(false)
            }
          }),
          { seed: 1, numRuns: 100 }
        )
      )
    )
  })

  test("may be an empty list", async () => {
    const { resolve } = resolving(ZONES)
    expect(await testing(resolve, ({ validateAll }) => validateAll({ emails: [], consensus: true }))).toEqual([])
  })
})

describe("a consensus", () => {
  test.each([
    ["ada@mailinator.com", true, true],
    ["ada@passmail.net", false, true],
    ["ada@duck.com", false, false],
    ["ada@example.com", false, false]
  ])("on %s", async (email, alone, together) => {
    const { resolve } = resolving(ZONES)
    const ask = (consensus: boolean) => testing(resolve, ({ validate }) => validate({ email, consensus }))
    expect([await ask(false), await ask(true)]).toMatchObject([
      { valid: true, disposable: alone, score: alone ? 0.1 : 0.9 },
      { valid: true, disposable: together, score: together ? 0.1 : 0.9 }
    ])
  })
})
