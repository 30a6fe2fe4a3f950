/** The thread that judges messages: what hostile ones do to it, and to those that are checked beside them. */
import { type Authentication, Dns, NotFound } from "@millrace/core"
import { Interruption } from "@millrace/testing"
import { MailVerdicts } from "@millrace/upstreams/mail"
import { Context, Deferred, Effect, Fiber, Layer, Logger, type Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as VerdictThread from "../../src/mail/VerdictThread.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(Logger.layer([]))))

type Records = ReadonlyArray<Dns.DnsRecord>
const txt = (text: string): Records => [{ ttl: 300, text }]
const ALLOWED = txt("v=spf1 ip4:127.0.0.1 -all")

/** The service over records by name and type, such as `TXT shop.test`, and the questions that it asked. */
const service = Effect.fnUntraced(function* (
  answers: (question: string) => Effect.Effect<Records> | undefined,
  options: MailVerdicts.Options = {}
) {
  const asked: Array<string> = []
  const resolve: Dns.DnsResolver["Service"]["resolve"] = ({ domain, type }) => {
    asked.push(`${type} ${domain}`)
    const records = answers(`${type} ${domain}`)
    return records === undefined
      ? Effect.fail(new NotFound({ resource: "domain" }))
      : Effect.map(records, (records) => ({ domain, type, records }))
  }
  const layer = MailVerdicts.layer(options).pipe(Layer.provide(Layer.succeed(Dns.DnsResolver, { resolve })))
  const { check } = Context.get(yield* Layer.build(layer), MailVerdicts.MailVerdicts)
  const from = (domain: string, raw = `From: a@${domain}\r\n\r\nHi\r\n`) =>
    check({ raw: Buffer.from(raw, "latin1"), ip: "127.0.0.1", helo: "client.test", sender: `a@${domain}` })
  return { asked, check, from }
})

const many = (count: number): Records => Array.from({ length: count }, () => ({ ttl: 1, text: "x" }))

const IN_DOUBT: Authentication = { spf: "temperror", dkim: "temperror", dmarc: "temperror", arc: "temperror" }
const HONEST = { spf: "pass", dkim: "none", dmarc: "none", arc: "none" }

describe("the thread of verdicts", () => {
  test("a message that takes its memory is in doubt; those beside it are checked again", () =>
    run(
      Effect.gen(function* () {
        const held = yield* Deferred.make<Records>()
        const huge = Effect.as(Deferred.succeed(held, ALLOWED), many(1_500_000))
        const answers: Readonly<Record<string, Effect.Effect<Records>>> = {
          "TXT bad.test": huge,
          "TXT good.test": Deferred.await(held),
          "TXT shop.test": Effect.succeed(ALLOWED)
        }
        const { asked, from } = yield* service((question) => answers[question], { memory: 48, timeLimit: "1 minute" })
        // The good one waits for its record until the bad one has its own
        const ends = yield* Effect.all([from("good.test"), from("bad.test")], { concurrency: "unbounded" })
        expect(ends).toEqual([HONEST, IN_DOUBT])
        expect(asked.filter((question) => question === "TXT good.test")).toHaveLength(2)
        expect(asked.filter((question) => question === "TXT bad.test")).toHaveLength(2)
        expect(yield* from("shop.test")).toEqual(HONEST)
      })
    ))

  test("a caller that leaves, at whatever moment, leaves nothing that keeps the process alive", { timeout: 120_000 }, () =>
    run(
      Effect.gen(function* () {
        const judge = yield* VerdictThread.make({ resolve: () => Effect.succeed({ values: [] }), memory: 48, idleLimit: "1 minute" })
        const check = judge({
          raw: Buffer.from("From: a@shop.test\r\n\r\nHi\r\n"),
          ip: "127.0.0.1",
          helo: "client.test",
          sender: "a@shop.test"
        })
        const ports = () => process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length
        yield* check
        const before = ports()
        // A thread that was ended is gone soon, and one that was begun is ready
        const idle = Effect.repeat(Effect.sleep(5), { until: () => ports() === before })
        expect(yield* Interruption.atEachOperation(Effect.succeed({ interrupted: check, later: idle }))).toBeGreaterThan(20)
      })
    )
  )

  test("a caller that leaves while it waits for name servers does not disturb the others", () =>
    run(
      Effect.gen(function* () {
        const [silent, late] = [yield* Deferred.make<Records>(), yield* Deferred.make<Records>()]
        const [reached, both] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const { asked, from } = yield* service((question) => {
          if (question === "TXT silent.test") return Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(silent))
          if (question === "TXT late.test") return Effect.andThen(Deferred.succeed(both, undefined), Deferred.await(late))
          return undefined
        })
        const [leaving, staying] = [yield* Effect.forkChild(from("silent.test")), yield* Effect.forkChild(from("late.test"))]
        yield* Deferred.await(reached)
        yield* Deferred.await(both)
        yield* Fiber.interrupt(leaving)
        yield* Deferred.succeed(late, ALLOWED)
        expect(yield* Fiber.join(staying)).toEqual(HONEST)
        expect(asked.filter((question) => question === "TXT late.test")).toHaveLength(1)
      })
    ))

  test("a message that keeps the thread busy until its time is over is in doubt; those beside it are checked again", () =>
    run(
      Effect.gen(function* () {
        const [long, late] = [yield* Deferred.make<Records>(), yield* Deferred.make<Records>()]
        const [begun, beside] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const { asked, from } = yield* service((question) => {
          if (question === "TXT bad.test") return Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(long))
          return question === "TXT good.test" ? Effect.andThen(Deferred.succeed(beside, undefined), Deferred.await(late)) : undefined
        })
        const bad = yield* Effect.forkChild(from("bad.test"))
        yield* Deferred.await(begun)
        yield* TestClock.adjust("4 seconds")
        const good = yield* Effect.forkChild(from("good.test"))
        yield* Deferred.await(beside)
        // The thread takes a while to read so many records
        yield* Deferred.succeed(long, many(500_000))
        yield* TestClock.adjust("4 seconds")
        expect(yield* Fiber.join(bad)).toEqual(IN_DOUBT)
        yield* Deferred.succeed(late, ALLOWED)
        expect(yield* Fiber.join(good)).toEqual(HONEST)
        expect(asked.filter((question) => question === "TXT good.test")).toHaveLength(2)
      }).pipe(Effect.provide(TestClock.layer()))
    ))

  test("a message asks name servers a hundred questions at most", () =>
    run(
      Effect.gen(function* () {
        const names = (count: number, tag: string) => Array.from({ length: count }, (_, i) => `${tag}${i}.test`)
        const policy = names(10, "n").map((name) => `mx:${name}`)
        const { asked, from } = yield* service((question) => {
          const [type, name = ""] = question.split(" ")
          if (type === "MX")
            return Effect.succeed(names(10, `${name.split(".")[0]}-`).map((exchange, priority) => ({ ttl: 1, exchange, priority })))
          if (question === "TXT bad.test") return Effect.succeed(txt(`v=spf1 ${policy.join(" ")} -all`))
          return type === "A" ? Effect.succeed([{ ttl: 1, ip: "192.0.2.1" }]) : undefined
        })
        expect(yield* from("bad.test")).toMatchObject({ spf: "temperror", dkim: "none" })
        expect(asked).toHaveLength(100)
      })
    ))

  const signed = (more = "") => `DKIM-Signature: v=1; a=rsa-sha256; d=bad.test; s=k1; h=from; bh=AAAA; ${more}b=AAAA\r\n`
  const chain = (length: number) =>
    Array.from({ length }, (_, at) => {
      const i = length - at
      const tags = `i=${i}; a=rsa-sha256; d=bad.test; s=k${i}; b=AAAA`
      return [
        `ARC-Seal: ${tags}; t=1; cv=${i === 1 ? "none" : "pass"}\r\n`,
        `ARC-Message-Signature: ${tags}; h=from; bh=AAAA\r\n`,
        `ARC-Authentication-Results: i=${i}; bad.test; spf=pass\r\n`
      ].join("")
    }).join("")

  // RFC 8601, section 2.7; null where nothing was checked
  const WORDS = [null, "none", "pass", "fail", "policy", "neutral", "temperror", "permerror", "softfail"]

  test("hostile messages have verdicts, and the next message has its own", () =>
    run(
      Effect.gen(function* () {
        const key = txt(`v=DKIM1; k=rsa; p=${"A".repeat(60_000)}`)
        const { from } = yield* service((question) => {
          if (question === "TXT good.test") return Effect.succeed(ALLOWED)
          return question.includes("_domainkey") ? Effect.succeed(key) : undefined
        })
        const hostile = [
          signed().repeat(1_000),
          signed(),
          signed("x=y; ".repeat(10_000)),
          signed(`z=${"|from:a".repeat(10_000)}; `).repeat(3),
          chain(5),
          chain(50),
          `X: x${"\r\n x".repeat(10_000)}\r\n`,
          `From: ${"(".repeat(100_000)}\r\n`,
          `From: ${"a@b.test, ".repeat(10_000)}\r\n`
        ]
        for (const headers of hostile) {
          const verdicts = yield* from("bad.test", `${headers}From: a@bad.test\r\n\r\nHi\r\n`)
          for (const verdict of Object.values(verdicts)) expect(WORDS).toContain(verdict)
          expect(verdicts.dkim).not.toBe("pass")
          expect(yield* from("good.test")).toEqual(HONEST)
        }
      })
    ))

  const part = fc.oneof(
    fc.constantFrom(
      "DKIM-Signature:",
      "ARC-Seal:",
      "From:",
      "a=rsa-sha256",
      "; ",
      "=",
      "\r\n",
      "\r\n ",
      "\r\n\r\n",
      "d=bad.test",
      "i=1",
      "bh=",
      "@"
    ),
    fc.string({ unit: "binary", maxLength: 20 })
  )

  test("no message breaks it", () =>
    run(
      Effect.gen(function* () {
        const { from } = yield* service(() => undefined)
        const property = fc.asyncProperty(fc.array(part, { maxLength: 60 }), async (parts) => {
          const verdicts = await Effect.runPromise(from("bad.test", parts.join("")))
          for (const verdict of Object.values(verdicts)) expect(WORDS).toContain(verdict)
          expect(verdicts.dkim).not.toBe("pass")
        })
        yield* Effect.promise(() => fc.assert(property, { numRuns: 300 }))
      })
    ))
})
