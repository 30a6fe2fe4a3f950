import { Dns, NotFound, UpstreamUnavailable } from "@millrace/core"
import { DnsClient } from "@millrace/upstreams"
import { Context, Effect, Exit, Fiber, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Server from "./NameServer.ts"
import { watchSockets } from "./Sockets.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

/** Names of the tests end in `.test`, so nothing is withheld unless told. */
const clientOf = (servers: ReadonlyArray<Server.NameServer>, options: DnsClient.Options = {}) =>
  Effect.map(
    Layer.build(DnsClient.layer({ servers: servers.map(({ address }) => address), withheld: [], ...options })),
    (context) => (domain: string, type: Dns.RecordType) => Context.get(context, Dns.DnsResolver).resolve({ domain, type })
  )

/** A client of one server. */
const clientFor = (script: (query: Server.Query) => Server.Reply, options?: DnsClient.Options) =>
  Effect.gen(function* () {
    const server = yield* Server.serve(script)
    return { server, resolve: yield* clientOf([server], options) }
  })

const notFound = new NotFound({ resource: "domain" })

const unavailable = (...reasons: ReadonlyArray<string>) =>
  new UpstreamUnavailable({ upstream: "dns", reason: reasons.join("; "), isolated: true })

const host = Server.zone({ "example.test": [Server.a("192.0.2.1")] })
const truth: Server.Reply = (query) => host(query)(query)
const lie = Server.answer({ type: "A", name: "example.test", ttl: 300, data: "203.0.113.66" })
const told = { domain: "example.test", type: "A", records: [{ ip: "192.0.2.1", ttl: 300 }] }

const everything = Server.zone({
  "example.test": [
    Server.a("192.0.2.1", 60),
    Server.a("192.0.2.2", 61),
    Server.aaaa("2001:db8:0:0:1:0:0:0", 62),
    Server.mx("Mail.example.test", 10, 63),
    Server.mx(".", 0, 64),
    Server.txt(["v=spf1 ", "-all"], 65),
    Server.ns("ns.example.test", 66),
    Server.soa(60, 67)
  ],
  "www.example.test": [Server.cname("Example.test", 30)]
})

const records = {
  A: [
    { ip: "192.0.2.1", ttl: 60 },
    { ip: "192.0.2.2", ttl: 61 }
  ],
  AAAA: [{ ip: "2001:db8:0:0:1::", ttl: 62 }],
  MX: [
    { exchange: "Mail.example.test", priority: 10, ttl: 63 },
    { exchange: ".", priority: 0, ttl: 64 }
  ],
  TXT: [{ text: "v=spf1 -all", ttl: 65 }],
  NS: [{ host: "ns.example.test", ttl: 66 }],
  CNAME: [],
  SOA: [
    {
      mname: "ns.example.test",
      rname: "host\\.master.example.test",
      serial: 7,
      refresh: 3600,
      retry: 600,
      expire: 86_400,
      minimum: 60,
      ttl: 67
    }
  ]
}

const recordTypes = Dns.RecordType.literals.filter((type) => type !== "ANY")

describe("a lookup", () => {
  test.each(recordTypes)("returns the records of type %s", (type) =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(everything)
        expect(yield* resolve("Example.TEST.", type)).toEqual({ domain: "example.test", type, records: records[type] })
      })
    )
  )

  test("of ANY returns the records of all types, each with its type", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(everything)
        expect(yield* resolve("example.test", "ANY")).toEqual({
          domain: "example.test",
          type: "ANY",
          records: recordTypes.flatMap((type) => records[type].map((record) => ({ type, ...record })))
        })
        expect(server.queries.map(({ type }) => type).sort()).toEqual([...recordTypes].sort())
      })
    ))

  test("of ANY fails if one type fails", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor((query) => (query.type === "TXT" ? Server.servfail : everything(query)), { attempts: 1 })
        expect(yield* Effect.flip(resolve("example.test", "ANY"))).toBeInstanceOf(UpstreamUnavailable)
        expect((yield* resolve("example.test", "A")).records).toEqual(records.A)
      })
    ))

  test("of ANY finds nothing for a domain that does not exist", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(everything)
        expect(yield* Effect.flip(resolve("nobody.test", "ANY"))).toEqual(notFound)
      })
    ))

  test("distinguishes a missing domain from one without records of the type", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(everything)
        expect(yield* Effect.flip(resolve("nobody.test", "A"))).toEqual(notFound)
        expect(yield* resolve("example.test", "CNAME")).toEqual({ domain: "example.test", type: "CNAME", records: [] })
      })
    ))

  test("queries names in ASCII, and malformed names not at all", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(Server.zone({ "xn--bcher-kva.test": [Server.a("192.0.2.1")] }))
        expect((yield* resolve("Bücher.test", "A")).domain).toBe("xn--bcher-kva.test")
        expect(yield* Effect.flip(resolve("192.0.2.1", "A"))).toEqual(notFound)
        expect(server.queries).toHaveLength(1)
      })
    ))

  test.each([
    ["UTF-8", ["Grü", "ße ", "🦔"], "Grüße 🦔"],
    ["UTF-8 split within a character", [Buffer.from([0x67, 0xc3]), Buffer.from([0xbc])], "gü"],
    ["Latin-1", [Buffer.from([0x67, 0xfc])], "gü"],
    ["nothing", [""], ""]
  ] as const)("reads text that is %s", (_, parts, text) =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(Server.zone({ "example.test": [Server.txt(parts)] }))
        expect((yield* resolve("example.test", "TXT")).records).toEqual([{ text, ttl: 300 }])
      })
    )
  )

  test("shows names as a zone file does", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(Server.zone({ "example.test": [Server.ns("a b\u0001ü\\c.test")] }))
        expect((yield* resolve("example.test", "NS")).records).toEqual([{ host: "a\\032b\\001\\195\\188\\\\c.test", ttl: 300 }])
      })
    ))

  test("reads a negative time to live as 0", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(Server.zone({ "example.test": [Server.a("192.0.2.1", 0xffff_ffff)] }))
        expect((yield* resolve("example.test", "A")).records).toEqual([{ ip: "192.0.2.1", ttl: 0 }])
      })
    ))

  const bytes = fc.uint8Array({ maxLength: 255 }).map((bytes) => Buffer.from(bytes))
  const ttl = fc.nat(0x7fff_ffff)
  const label = fc.stringMatching(/^[a-z0-9_-]{1,20}$/u)
  const target = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => [...labels, "test"].join("."))
  const hextets = fc.array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 8, maxLength: 8 })
  const a = fc.tuple(fc.ipV4(), ttl).map(([ip, ttl]) => ({ record: Server.a(ip, ttl), shown: { ip, ttl } }))
  const aaaa = fc.tuple(hextets, ttl).map(([hextets, ttl]) => {
    const ip = hextets.map((hextet) => hextet.toString(16)).join(":")
    return { record: Server.aaaa(ip, ttl), shown: { ip, ttl } }
  })
  const mx = fc.tuple(target, fc.nat(0xffff), ttl).map(([exchange, priority, ttl]) => ({
    record: Server.mx(exchange, priority, ttl),
    shown: { exchange, priority, ttl }
  }))
  const ns = fc.tuple(target, ttl).map(([host, ttl]) => ({ record: Server.ns(host, ttl), shown: { host, ttl } }))
  const txt = fc
    .tuple(fc.array(fc.oneof(bytes, fc.string({ unit: "grapheme", maxLength: 20 })), { minLength: 1, maxLength: 8 }), ttl)
    .map(([parts, ttl]) => {
      const whole = Buffer.concat(parts.map((part) => Buffer.from(part)))
      const utf8 = whole.toString("utf8")
      return { record: Server.txt(parts, ttl), shown: { text: Buffer.from(utf8).equals(whole) ? utf8 : whole.toString("latin1"), ttl } }
    })
  const of = <A>(arbitrary: fc.Arbitrary<A>) => fc.array(arbitrary, { maxLength: 6 })
  const zones = fc.dictionary(target, fc.record({ A: of(a), AAAA: of(aaaa), MX: of(mx), NS: of(ns), TXT: of(txt) }), { maxKeys: 4 })

  /** All eight groups of an address, in lower case and without leading zeros. */
  const spelled = (ip: string): string => {
    const [head = "", tail] = ip.split("::").map((half) => (half === "" ? [] : half.split(":")))
    return tail === undefined ? ip : [...head, ...Array<string>(8 - head.length - tail.length).fill("0"), ...tail].join(":")
  }

  test("returns the records of any zone over both transports", () =>
    fc.assert(
      fc.asyncProperty(zones, (zone) =>
        run(
          Effect.gen(function* () {
            const names = Object.entries(zone)
            const { resolve } = yield* clientFor(
              Server.zone(
                Object.fromEntries(names.map(([name, sets]) => [name, Object.values(sets).flatMap((set) => set.map((one) => one.record))]))
              )
            )
            for (const [name, sets] of names)
              for (const type of ["A", "AAAA", "MX", "NS", "TXT"] as const) {
                const { records } = yield* resolve(name, type)
                expect(records.map((record) => ("ip" in record ? { ...record, ip: spelled(record.ip) } : record))).toEqual(
                  sets[type].map(({ shown }) => shown)
                )
              }
          })
        )
      ),
      { numRuns: 30, seed: 1 }
    ))
})

describe("an answer that does not fit a datagram", () => {
  test("is requested over TCP", () =>
    run(
      Effect.gen(function* () {
        const text = "x".repeat(255)
        const { resolve, server } = yield* clientFor(Server.zone({ "example.test": Array.from({ length: 100 }, () => Server.txt(text)) }))
        expect((yield* resolve("example.test", "TXT")).records).toEqual(Array.from({ length: 100 }, () => ({ text, ttl: 300 })))
        expect(server.queries.map(({ transport }) => transport)).toEqual(["udp", "tcp"])
      })
    ))

  test.each<[string, Server.Reply, string]>([
    [
      "cut off there, too",
      ({ transport, ...query }) => Server.truncated(truth)({ ...query, transport: "udp" }),
      "its answer is cut off over TCP, too"
    ],
    ["half", Server.truncated(Server.cutShort(truth)), "it hung up"],
    ["noise", Server.truncated(Server.garbage(Buffer.from("noise"))), "it answered something else over TCP"],
    ["for another id", Server.truncated(Server.wrongId(truth)), "it answered something else over TCP"],
    ["for another name", Server.truncated(Server.wrongName(truth)), "it answered something else over TCP"],
    ["a failure", Server.truncated(Server.servfail), "SERVFAIL"]
  ])("and is %s over TCP is unavailable", (_, reply, reason) =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(() => reply, { attempts: 1 })
        expect(yield* Effect.flip(resolve("example.test", "A"))).toEqual(unavailable(`${server.address}: ${reason}`))
      })
    )
  )

  test("and never arrives over TCP is unavailable after the time limit", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(() => Server.truncated(Server.silence), { attempts: 1 })
        const asked = yield* Effect.forkChild(Effect.flip(resolve("example.test", "A")), { startImmediately: true })
        yield* server.received
        yield* server.received
        yield* TestClock.adjust("2 seconds")
        expect(yield* Fiber.join(asked)).toEqual(unavailable(`${server.address}: no answer in time`))
      })
    ))
})

describe("with several servers", () => {
  test.each<[string, Server.Reply]>([
    ["fails", Server.servfail],
    ["refuses", Server.refused],
    ["does not understand", Server.refusal("FORMERR")],
    ["does not do such things", Server.refusal("NOTIMP")],
    ["refers to others", Server.referral],
    ["is cut off over TCP", Server.truncated(Server.cutShort(truth))]
  ])("a server that %s is skipped", (_, reply) =>
    run(
      Effect.gen(function* () {
        const bad = yield* Server.serve(() => reply)
        const good = yield* Server.serve(host)
        const resolve = yield* clientOf([bad, good])
        expect(yield* resolve("example.test", "A")).toEqual(told)
        expect(bad.queries[0]?.name).toBe("example.test")
        expect(good.queries).toHaveLength(1)
      })
    )
  )

  test("a silent server is skipped after its time limit, and queried again in the next round", () =>
    run(
      Effect.gen(function* () {
        const silent = yield* Server.serve(() => Server.silence)
        const recovering = yield* Server.serve(() => Server.inTurn(Server.servfail))
        const resolve = yield* clientOf([silent, recovering], { timeout: "3 seconds" })
        const asked = yield* Effect.forkChild(Effect.flip(resolve("example.test", "A")), { startImmediately: true })
        yield* silent.received
        yield* TestClock.adjust("3 seconds")
        yield* silent.received
        yield* TestClock.adjust("3 seconds")
        const reasons = [`${silent.address}: no answer in time`, `${recovering.address}: SERVFAIL`]
        expect(yield* Fiber.join(asked)).toEqual(unavailable(...reasons, ...reasons))
      })
    ))

  test("a negative answer is accepted", () =>
    run(
      Effect.gen(function* () {
        const first = yield* Server.serve(() => Server.nxdomain())
        const second = yield* Server.serve(host)
        expect(yield* Effect.flip((yield* clientOf([first, second]))("example.test", "A"))).toEqual(notFound)
        expect(second.queries).toHaveLength(0)
      })
    ))

  test("an unreachable server is skipped", () =>
    run(
      Effect.gen(function* () {
        const gone = yield* Effect.scoped(Server.serve(host))
        const good = yield* Server.serve(host)
        expect(yield* (yield* clientOf([gone, good]))("example.test", "A")).toEqual(told)
      })
    ))

  test("a server that cannot be sent to is skipped", () =>
    run(
      Effect.gen(function* () {
        const good = yield* Server.serve(host)
        const broadcast = { ...good, address: "255.255.255.255" }
        expect(yield* (yield* clientOf([broadcast, good]))("example.test", "A")).toEqual(told)
      })
    ))

  test("a server may have an IPv6 address", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Server.serve(() => Server.truncated(truth))
        const resolve = yield* clientOf([{ ...server, address: `[::ffff:127.0.0.1]:${server.port}` }])
        expect(yield* resolve("example.test", "A")).toEqual(told)
      })
    ))

  test("a malformed address is a defect", () =>
    run(
      Effect.gen(function* () {
        const exit = yield* Effect.exit(Layer.build(DnsClient.layer({ servers: ["dns.example.test"] })))
        expect(Exit.hasDies(exit)).toBe(true)
        expect(["dns.example.test", "192.0.2.1", "[::1]:5353"].map(DnsClient.isServer)).toEqual([false, true, true])
      })
    ))

  test("a lookup takes no longer than its time limit", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(() => Server.silence, { timeout: "1 minute", timeLimit: "5 seconds" })
        const asked = yield* Effect.forkChild(Effect.flip(resolve("example.test", "A")), { startImmediately: true })
        yield* server.received
        yield* TestClock.adjust("5 seconds")
        expect(yield* Fiber.join(asked)).toEqual(unavailable("the lookup exceeds its time limit"))
      })
    ))
})

describe("a forged or broken reply", () => {
  const lies: ReadonlyArray<[string, Server.Reply]> = [
    ["of another id", Server.wrongId(lie)],
    ["of another name", Server.wrongName(lie)],
    ["of another type", Server.wrongType(lie)],
    ["of another class", Server.wrongClass(lie)],
    ["of no question", Server.noQuestion(lie)],
    ["that is the query", Server.echo],
    ["that is noise", Server.garbage(Buffer.from("noise"))],
    ["that is empty", Server.garbage(Buffer.alloc(0))],
    ["that is cut off", (query) => lie(query).map(({ bytes }) => ({ bytes: bytes.subarray(0, -1) }))],
    ["from another port", Server.byStranger(lie)]
  ]

  test.each(lies)("%s is ignored, and the true reply is still accepted", (_, reply) =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(() => Server.both(reply, reply, truth))
        expect(yield* resolve("example.test", "A")).toEqual(told)
      })
    )
  )

  test.each(lies)("%s alone makes the lookup unavailable after the time limit", (_, reply) =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(() => reply, { attempts: 1 })
        const asked = yield* Effect.forkChild(Effect.flip(resolve("example.test", "A")), { startImmediately: true })
        yield* server.received
        yield* TestClock.adjust("2 seconds")
        expect(yield* Fiber.join(asked)).toEqual(unavailable(`${server.address}: no answer in time`))
      })
    )
  )

  test("of any bytes makes the lookup unavailable over TCP", () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 600 }), (bytes) =>
        run(
          Effect.gen(function* () {
            const { resolve } = yield* clientFor(() => Server.truncated(Server.garbage(bytes)), { attempts: 1 })
            expect(yield* Effect.flip(resolve("example.test", "A"))).toBeInstanceOf(UpstreamUnavailable)
          })
        )
      ),
      { numRuns: 30, seed: 1 }
    ))

  test("with a few changed bytes is an answer or unavailable, never a defect", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 2, max: 400 }), fc.nat(255)), { minLength: 1, maxLength: 3 }),
        fc.constantFrom(...recordTypes),
        (changes, type) =>
          run(
            Effect.gen(function* () {
              const changed: Server.Reply = (query) =>
                everything(query)(query).map(({ bytes }) => {
                  for (const [index, byte] of changes) if (index < bytes.length) bytes[index] = byte
                  return { bytes }
                })
              const { resolve } = yield* clientFor(() => Server.truncated(changed), { attempts: 1 })
              const exit = yield* Effect.exit(resolve("www.example.test", type))
              expect(Exit.hasDies(exit)).toBe(false)
            })
          )
      ),
      { numRuns: 60, seed: 1 }
    ))

  test("may differ from the query in the case of a name", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(() => Server.shouted(truth))
        expect(yield* resolve("example.test", "A")).toEqual(told)
      })
    ))

  test("is ignored beside an answer", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(() =>
          Server.answer(
            { type: "A", name: "other.test", ttl: 1, data: "203.0.113.66" },
            { type: "A", name: "example.test", ttl: 1, class: "CH", data: "203.0.113.66" },
            { type: "A", name: "EXAMPLE.test", ttl: 300, data: "192.0.2.1" },
            { type: "TXT", name: "example.test", ttl: 1, data: "no address" }
          )
        )
        expect(yield* resolve("example.test", "A")).toEqual(told)
      })
    ))

  test("is hard to forge: each query has its own port and id", () =>
    run(
      Effect.gen(function* () {
        const ids = [513, 7, 65_535]
        const { resolve, server } = yield* clientFor(host, { cacheEntries: 0 }).pipe(
          Effect.provideService(DnsClient.QueryIds, () => ids.shift() ?? 0)
        )
        for (let count = 0; count < 3; count++) yield* resolve("example.test", "A")
        expect(server.queries.map(({ packet }) => packet.id)).toEqual([513, 7, 65_535])
        expect(new Set(server.queries.map(({ port }) => port)).size).toBe(3)
      })
    ))
})

/** `c0` is an alias of `c1`, and so on; the last has an address. */
const chain = (links: number): Record<string, ReadonlyArray<Server.ZoneRecord>> => ({
  ...Object.fromEntries(Array.from({ length: links }, (_, link) => [`c${link}.test`, [Server.cname(`C${link + 1}.test`, 100 - link)]])),
  [`c${links}.test`]: [Server.a("192.0.2.1", 300), Server.txt("end", 20)]
})

describe("a chain of CNAME records", () => {
  test.each([1, 2, 8])("of %d links is followed, and is cached for its shortest time", (links) =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(Server.zone(chain(links)))
        expect((yield* resolve("c0.test", "A")).records).toEqual([{ ip: "192.0.2.1", ttl: 101 - links }])
        expect((yield* resolve("c0.test", "TXT")).records).toEqual([{ text: "end", ttl: 20 }])
        expect(server.queries).toHaveLength(2)
      })
    )
  )

  test.each([1, 2, 8])("of %d links is continued by another query", (links) =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(Server.linkByLink(Server.zone(chain(links))))
        expect((yield* resolve("c0.test", "A")).records).toEqual([{ ip: "192.0.2.1", ttl: 101 - links }])
        expect(server.queries.map(({ name }) => name)).toEqual(Array.from({ length: links + 1 }, (_, link) => `c${link}.test`))
      })
    )
  )

  test("is returned itself when its type is queried", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(Server.zone(chain(2)))
        expect((yield* resolve("c0.test", "CNAME")).records).toEqual([{ host: "C1.test", ttl: 100 }])
      })
    ))

  test("may end without records, or at a missing domain", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(Server.zone({ ...chain(3), "lost.test": [Server.cname("nobody.test")] }))
        expect((yield* resolve("c0.test", "MX")).records).toEqual([])
        expect(yield* Effect.flip(resolve("lost.test", "A"))).toEqual(notFound)
      })
    ))

  test("is not continued if its own zone denies the records", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(() => Server.aliasOfNothing("alias.test", "end.test"))
        expect((yield* resolve("alias.test", "MX")).records).toEqual([])
        expect(server.queries).toHaveLength(1)
      })
    ))

  test("is continued if another zone denies the records", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(
          Server.zone({ "alias.test": Server.aliasOfNothing("alias.test", "end.example"), "end.example": [Server.mx("mail.example")] })
        )
        expect((yield* resolve("alias.test", "MX")).records).toEqual([{ exchange: "mail.example", priority: 10, ttl: 300 }])
      })
    ))

  test.each([".", "a b.test", "ü.test", "192.0.2.1"])("is not continued at %s, which is no domain name", (target) =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(Server.zone({ "alias.test": [Server.cname(target)] }))
        expect(yield* Effect.flip(resolve("alias.test", "A"))).toEqual(unavailable("a CNAME record leads to a malformed name"))
        expect(server.queries).toHaveLength(1)
      })
    )
  )

  test.each<[string, (query: Server.Query) => Server.Reply]>([
    ["longer", Server.zone(chain(9))],
    ["longer, link by link,", Server.linkByLink(Server.zone(chain(9)))],
    ["to itself", Server.zone({ "c0.test": [Server.cname("c0.test")] })],
    ["to itself, link by link,", Server.linkByLink(Server.zone({ "c0.test": [Server.cname("c0.test")] }))],
    ["in a loop", Server.zone({ "c0.test": [Server.cname("c1.test")], "c1.test": [Server.cname("c0.test")] })]
  ])("is unavailable if it is %s", (_, script) =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(script)
        expect(yield* Effect.flip(resolve("c0.test", "A"))).toEqual(unavailable("more than 8 CNAME records lead on from one another"))
      })
    )
  )
})

describe("names of internal networks", () => {
  const inside = Server.zone({
    localhost: [Server.a("127.0.0.1")],
    "db.internal": [Server.a("10.0.0.1")],
    "printer.local": [Server.a("10.0.0.2")],
    "localhosts.example": [Server.a("192.0.2.1")],
    "a.example": [Server.cname("db.internal")],
    "b.example": [Server.cname("redis")],
    redis: [Server.a("172.17.0.2")],
    org: [Server.ns("a0.org.example"), Server.soa()]
  })

  test.each([
    "localhost",
    "a.localhost",
    "db.internal",
    "printer.local",
    "router.home.arpa",
    "example.test",
    "a.onion",
    "1.10.in-addr.arpa",
    "1.31.172.in-addr.arpa"
  ])("such as %s are neither queried nor revealed", (domain) =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(inside, { withheld: DnsClient.SPECIAL_USE })
        expect(yield* Effect.flip(resolve(domain, "ANY"))).toEqual(notFound)
        expect(server.queries).toHaveLength(0)
      })
    )
  )

  test.each(["a.example", "b.example"])("are not revealed by an alias, here %s", (domain) =>
    run(
      Effect.gen(function* () {
        for (const script of [inside, Server.linkByLink(inside)]) {
          const { resolve, server } = yield* clientFor(script, { withheld: DnsClient.SPECIAL_USE })
          expect(yield* Effect.flip(resolve(domain, "A"))).toEqual(notFound)
          expect(server.queries).toHaveLength(1)
        }
      })
    )
  )

  test("do not include similar names", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(inside, { withheld: DnsClient.SPECIAL_USE })
        expect((yield* resolve("localhosts.example", "A")).records).toHaveLength(1)
      })
    ))

  test("without a dot have only the records of a top-level domain", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(inside)
        expect((yield* resolve("redis", "A")).records).toEqual([])
        expect((yield* resolve("org", "ANY")).records.map(({ type }) => type)).toEqual(["NS", "SOA"])
        expect(yield* Effect.flip(resolve("postgres", "A"))).toEqual(notFound)
        expect(new Set(server.queries.map(({ type }) => type))).toEqual(new Set(["NS", "SOA"]))
      })
    ))
})

describe("a cached answer", () => {
  test("is kept for its time to live, which counts down", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(host)
        const ttl = Effect.map(resolve("example.test", "A"), ({ records }) => records[0]?.ttl)
        expect(yield* ttl).toBe(300)
        yield* TestClock.adjust("999 millis")
        expect(yield* ttl).toBe(300)
        yield* TestClock.adjust("99 seconds")
        expect(yield* ttl).toBe(201)
        yield* TestClock.adjust("200 seconds")
        expect(yield* ttl).toBe(1)
        expect(server.queries).toHaveLength(1)
        yield* TestClock.adjust("1 seconds")
        expect(yield* ttl).toBe(300)
        expect(server.queries).toHaveLength(2)
      })
    ))

  test("is kept for its shortest time to live, and no longer than a day", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(
          Server.zone({
            "short.test": [Server.a("192.0.2.1", 300), Server.a("192.0.2.2", 20)],
            "none.test": [Server.a("192.0.2.1", 0)],
            "long.test": [Server.a("192.0.2.1", 1_000_000)]
          })
        )
        const asked = (name: string) =>
          Effect.map(resolve(`${name}.test`, "A"), ({ records }) => [server.queries.length, ...records.map(({ ttl }) => ttl)])
        expect(yield* asked("short")).toEqual([1, 300, 20])
        expect(yield* asked("none")).toEqual([2, 0])
        expect(yield* asked("none")).toEqual([3, 0])
        expect(yield* asked("long")).toEqual([4, 1_000_000])
        yield* TestClock.adjust("19 seconds")
        expect(yield* asked("short")).toEqual([4, 281, 1])
        yield* TestClock.adjust("1 seconds")
        expect(yield* asked("short")).toEqual([5, 300, 20])
        yield* TestClock.adjust("86379 seconds")
        expect(yield* asked("long")).toEqual([5, 913_601])
        yield* TestClock.adjust("1 seconds")
        expect(yield* asked("long")).toEqual([6, 1_000_000])
      })
    ))

  test("of several replies is kept for the time of each, and shown with the shortest", () =>
    run(
      Effect.gen(function* () {
        const zone = Server.zone({ "alias.test": [Server.cname("end.test", 30)], "end.test": [Server.a("192.0.2.1", 100)] })
        const { resolve, server } = yield* clientFor(Server.linkByLink(zone))
        const ttl = Effect.map(resolve("alias.test", "A"), ({ records }) => records[0]?.ttl)
        expect(yield* ttl).toBe(30)
        yield* TestClock.adjust("29 seconds")
        expect(yield* ttl).toBe(1)
        expect(server.queries).toHaveLength(2)
        yield* TestClock.adjust("51 seconds")
        expect(yield* ttl).toBe(20)
        expect(server.queries.map(({ name }) => name)).toEqual(["alias.test", "end.test", "alias.test"])
      })
    ))

  test.each<[string, Server.Absence | undefined, number]>([
    ["the minimum of its zone", { minimum: 60 }, 60],
    ["the time of its proof", { minimum: 600, ttl: 60 }, 60],
    ["an hour", { minimum: 100_000, ttl: 100_000 }, 3600],
    ["no time without a proof", undefined, 0]
  ])("that is negative is kept for %s", (_, absence, seconds) =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(Server.zone({ "example.test": [Server.a("192.0.2.1")] }, absence))
        const ask = Effect.andThen(
          Effect.flip(resolve("nobody.test", "A")),
          Effect.map(resolve("example.test", "MX"), ({ records }) => expect(records).toEqual([]))
        )
        yield* ask
        expect(server.queries).toHaveLength(2)
        yield* TestClock.adjust((seconds - 1) * 1000)
        yield* ask
        expect(server.queries).toHaveLength(seconds === 0 ? 4 : 2)
        yield* TestClock.adjust("1 seconds")
        yield* ask
        expect(server.queries).toHaveLength(seconds === 0 ? 6 : 4)
      })
    )
  )

  test("is never a failure", () =>
    run(
      Effect.gen(function* () {
        const replies = Server.inTurn(Server.servfail, truth)
        const { resolve } = yield* clientFor(() => replies, { attempts: 1 })
        expect(yield* Effect.flip(resolve("example.test", "A"))).toBeInstanceOf(UpstreamUnavailable)
        expect(yield* resolve("example.test", "A")).toEqual(told)
      })
    ))

  test("is one of the latest, up to the capacity", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(() => Server.nodata({ minimum: 60 }), { cacheEntries: 2 })
        for (const name of ["a", "b", "a", "c", "a", "b"]) yield* resolve(`${name}.test`, "A")
        expect(server.queries.map(({ name }) => name)).toEqual(["a.test", "b.test", "c.test", "b.test"])
      })
    ))

  test("is not very large", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(
          Server.zone({ "example.test": Array.from({ length: 20 }, () => Server.txt("x".repeat(255))) })
        )
        for (let count = 0; count < 2; count++) expect((yield* resolve("example.test", "TXT")).records).toHaveLength(20)
        expect(server.queries).toHaveLength(4)
      })
    ))

  test("is of its type and name only", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(everything)
        expect((yield* resolve("example.test", "A")).records).toEqual(records.A)
        expect((yield* resolve("example.test", "NS")).records).toEqual(records.NS)
        expect((yield* resolve("example.test", "ANY")).records).toHaveLength(8)
        expect(server.queries).toHaveLength(7)
      })
    ))
})

describe("concurrent equal lookups", () => {
  test("share one query", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(host)
        const asked = ["example.test", "EXAMPLE.test", "example.test."].map((domain) => resolve(domain, "A"))
        expect(yield* Effect.all(asked, { concurrency: "unbounded" })).toEqual([told, told, told])
        expect(server.queries).toHaveLength(1)
      })
    ))

  test("continue when one of them is interrupted", () =>
    run(
      Effect.gen(function* () {
        const replies = Server.inTurn(Server.silence, truth)
        const { resolve, server } = yield* clientFor(() => replies)
        const leaving = yield* Effect.forkChild(resolve("example.test", "A"), { startImmediately: true })
        const staying = yield* Effect.forkChild(resolve("example.test", "A"), { startImmediately: true })
        yield* server.received
        yield* Fiber.interrupt(leaving)
        yield* TestClock.adjust("2 seconds")
        expect(yield* Fiber.join(staying)).toEqual(told)
        expect(server.queries).toHaveLength(2)
      })
    ))
})

describe("sockets", () => {
  test("are closed after their lookup, however it ends", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Server.serve(({ name, transport }) =>
          name === "silent.test" && transport === "tcp"
            ? Server.silence
            : Server.truncated(name === "noise.test" ? Server.cutShort(truth) : truth)
        )
        const sockets = yield* watchSockets
        const resolve = yield* clientOf([server], { attempts: 1, cacheEntries: 0 })
        yield* resolve("example.test", "A")
        yield* Effect.flip(resolve("nobody.test", "A"))
        yield* Effect.flip(resolve("noise.test", "A"))
        expect(sockets).toEqual({ opened: 6, closed: 6 })

        const overTcp = Effect.repeat(server.received, { until: ({ name, transport }) => name === "silent.test" && transport === "tcp" })
        const late = yield* Effect.forkChild(Effect.flip(resolve("silent.test", "A")), { startImmediately: true })
        yield* overTcp
        expect(sockets).toEqual({ opened: 8, closed: 7 })
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.join(late)
        expect(sockets).toEqual({ opened: 8, closed: 8 })

        const given = yield* Effect.forkChild(resolve("silent.test", "A"), { startImmediately: true })
        yield* overTcp
        yield* Fiber.interrupt(given)
        expect(sockets).toEqual({ opened: 10, closed: 10 })
      })
    ))

  test("are closed when a query is interrupted before it is sent", () =>
    run(
      Effect.gen(function* () {
        const { resolve } = yield* clientFor(() => Server.silence)
        const sockets = yield* watchSockets
        const asked = yield* Effect.forkChild(resolve("example.test", "ANY"), { startImmediately: true })
        yield* Effect.yieldNow
        yield* Fiber.interrupt(asked)
        expect(sockets.opened).toBeGreaterThan(0)
        expect(sockets.closed).toBe(sockets.opened)
      })
    ))

  test("are closed when the server refuses", () =>
    run(
      Effect.gen(function* () {
        const gone = yield* Effect.scoped(Server.serve(host))
        const sockets = yield* watchSockets
        expect(yield* Effect.flip((yield* clientOf([gone]))("example.test", "A"))).toBeInstanceOf(UpstreamUnavailable)
        expect(sockets).toEqual({ opened: 2, closed: 2 })
      })
    ))

  test("are limited in number", () =>
    run(
      Effect.gen(function* () {
        const { resolve, server } = yield* clientFor(() => Server.silence, { concurrency: 2, attempts: 1 })
        const asked = yield* Effect.forkChild(Effect.flip(resolve("example.test", "ANY")), { startImmediately: true })
        yield* server.received
        yield* server.received
        expect(server.queries).toHaveLength(2)
        yield* TestClock.adjust("2 seconds")
        expect(yield* Fiber.join(asked)).toBeInstanceOf(UpstreamUnavailable)
      })
    ))
})
