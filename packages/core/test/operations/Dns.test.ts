import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Dns from "../../src/operations/Dns.ts"
import { InvalidInput } from "../../src/work/OperationError.ts"
import { check } from "../vault/Property.ts"

const CALLER = { accountId: "acc_1", requestId: "req_1" }

const label = fc.stringMatching(/^[a-z0-9_-]{1,63}$/u)
const name = fc
  .tuple(fc.array(label, { maxLength: 3 }), fc.stringMatching(/^[a-z]{2,20}$/u))
  .map(([labels, top]) => [...labels, top].join("."))
  .filter((name) => name.length <= 253)

const shouted = fc.array(fc.boolean(), { minLength: 253, maxLength: 253 })

const checked = (domain: string) =>
  Dns.resolve.check({ domain, type: "ANY" }, CALLER).pipe(Effect.provideService(Dns.DnsResolver, { resolve: () => Effect.die("unasked") }))

describe("a domain name", () => {
  test("is normalised from any spelling", () => {
    check(
      fc.property(name, shouted, fc.boolean(), (name, upper, dot) => {
        const written = [...name].map((letter, index) => (upper[index] === true ? letter.toUpperCase() : letter)).join("")
        expect(Dns.domainName(dot ? `${written}.` : written)).toBe(name)
      })
    )
  })

  test("normalises any text to a domain name or undefined, and is idempotent", () => {
    check(
      fc.property(fc.oneof(fc.string({ unit: "grapheme" }), fc.webUrl(), fc.ipV4(), fc.ipV6()), (text) => {
        const name = Dns.domainName(text)
        if (name === undefined) return
        expect(name).toMatch(/^[a-z0-9_.-]{1,253}$/u)
        expect(Dns.domainName(name)).toBe(name)
      }),
      500
    )
  })

  test.each([
    ["bücher.example", "xn--bcher-kva.example"],
    ["BÜCHER.Example.", "xn--bcher-kva.example"],
    ["例え。テスト", "xn--r8jz45g.xn--zckzah"],
    ["faß.de", "xn--fa-hia.de"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["_dmarc.example.com", "_dmarc.example.com"],
    ["a.b", "a.b"],
    ["com", "com"],
    ["1.2.3.a4", "1.2.3.a4"],
    [`${"a".repeat(63)}.com`, `${"a".repeat(63)}.com`]
  ])("%j is asked for as %s", (text, name) => {
    expect(Dns.domainName(text)).toBe(name)
  })

  test.each([
    ...["", ".", "..", "a..b", ".com", "com..", "192.0.2.1", "192.0.2.1.", "１９２.0.2.1", "1", "2001:db8::1", "[::1]", "::"],
    ...["a b.com", "a/b.com", "a@b.com", "example.com:53", "http://example.com", "ex%61mple.com", "ü%2e.com", "*.example.com"],
    ...["a\u0000.com", "a\\.com", "\u00ad.com", "ü/a.com", "ü:80", "℀.com", "xn--a.ü", `${"a".repeat(64)}.com`, `${"ü".repeat(63)}.com`],
    `${"a.".repeat(126)}com`
  ])("is not %j, which is refused before anything is held", async (domain) => {
    expect(Dns.domainName(domain)).toBeUndefined()
    const message = `${JSON.stringify(domain)} is not a domain name such as "example.com"`
    expect(await Effect.runPromise(Effect.flip(checked(domain)))).toEqual(new InvalidInput({ field: "domain", message }))
  })

  test("that is valid passes the check", async () => {
    expect(await Effect.runPromise(checked("example.com."))).toBeUndefined()
  })
})

describe("the operation", () => {
  test("returns the resolver's answer", async () => {
    const answer: Dns.DnsAnswer = { domain: "example.com", type: "A", records: [{ ttl: 60, ip: "192.0.2.1" }] }
    const run = Dns.resolve
      .run({ domain: "Example.com", type: "A" }, { ...CALLER, reservationId: "res_1" })
      .pipe(Effect.provideService(Dns.DnsResolver, { resolve: () => Effect.succeed(answer) }))
    expect(await Effect.runPromise(run)).toEqual({ data: answer })
  })

  test("has an example that matches its schemas", () => {
    const { example, success, route } = Dns.resolve
    expect(Schema.decodeUnknownSync(success)(example?.data)).toEqual(example?.data)
    expect(Schema.decodeUnknownSync(Schema.Struct({ ...route.params, ...route.query }))(example?.input)).toEqual(example?.input)
  })
})
