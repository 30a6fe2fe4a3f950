import { Effect, Exit, Fiber, Latch, Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as Client from "./Client.ts"
import { ANNA, DOMAIN, serve } from "./Host.ts"
import * as Mailboxes from "./Mailboxes.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const BEGIN = ["MAIL FROM:<sender@example.test>", `RCPT TO:<${ANNA}>`, "DATA"]

const turn = Effect.promise(() => new Promise<void>((resume) => setImmediate(() => setImmediate(resume))))

describe("size", () => {
  test.each([
    { bytes: 1_000, code: "250" },
    { bytes: 1_001, code: "552" },
    { bytes: 4_000, code: "552" }
  ])("a message of $bytes bytes gets $code where 1000 are allowed, and the session goes on", ({ bytes, code }) =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const client = yield* Client.greeted((yield* serve(mailboxes, { limits: { size: 1_000 } })).port)
        yield* Client.codes(client, BEGIN)
        yield* client.write(`${"x".repeat(bytes - 2)}\r\n.\r\n`)
        expect((yield* client.answer).slice(0, 3)).toBe(code)
        expect(mailboxes.taken.get(ANNA)).toHaveLength(code === "250" ? 1 : 0)
        expect(yield* client.ask("NOOP")).toMatch(/^250 /u)
      })
    )
  )

  test("a client that does not stop gets 421, without an end of its message", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const client = yield* Client.greeted((yield* serve(mailboxes, { limits: { size: 1_000 } })).port)
        yield* Client.codes(client, BEGIN)
        yield* client.write("x".repeat(5_000))
        expect(yield* client.answer).toMatch(/^421 /u)
        expect(yield* client.answer).toBe("end")
      })
    ))

  test("451 where messages together take more memory than they may, and none afterwards", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const begun = yield* Latch.make()
        const durable = yield* Latch.make()
        mailboxes.afterwards = Effect.andThen(begun.open, durable.await)
        const { port } = yield* serve(mailboxes, { limits: { size: 1_000, buffered: 1_500 } })
        const sent = (client: Client.Client) => Effect.andThen(client.write(`${"x".repeat(898)}\r\n.\r\n`), client.answer)
        const first = yield* Client.greeted(port)
        const second = yield* Client.greeted(port)
        yield* Effect.forEach([first, second], (client) => Client.codes(client, BEGIN))
        const answer = yield* Effect.forkChild(sent(first))
        yield* begun.await
        expect(yield* sent(second)).toMatch(/^451 /u)
        yield* durable.open
        expect(yield* Fiber.join(answer)).toMatch(/^250 /u)
        // A sender that leaves within its message gives the memory back, too
        yield* Client.codes(second, BEGIN)
        yield* second.write("x".repeat(899))
        second.socket.destroy()
        const third = yield* Client.greeted(port)
        yield* Client.codes(third, BEGIN)
        expect(yield* sent(third)).toMatch(/^250 /u)
      })
    ))
})

describe("connections", () => {
  const first = (port: number) => Effect.flatMap(Client.open(port), (client) => Effect.map(client.answer, (answer) => answer.slice(0, 3)))

  test("of 300 from one address, as many are served as may be; the others get 421 and leave nothing", () =>
    run(
      Effect.gen(function* () {
        const { port, connections } = yield* serve(Mailboxes.make([]), { limits: { connectionsOfClient: 20, connectionsPerMinute: 1_000 } })
        const codes = yield* Effect.forEach(Array.from({ length: 300 }), () => first(port), { concurrency: "unbounded" })
        expect(codes.filter((code) => code === "220")).toHaveLength(20)
        expect(codes.filter((code) => code === "421")).toHaveLength(280)
        expect(yield* connections).toBe(20)
      })
    ))

  test("a place is free again when its connection ended", () =>
    run(
      Effect.gen(function* () {
        const { port, connections } = yield* serve(Mailboxes.make([]), { limits: { connections: 1 } })
        const client = yield* Client.open(port)
        expect(yield* client.answer).toMatch(/^220 /u)
        expect(yield* first(port)).toBe("421")
        yield* client.ask("QUIT")
        client.socket.end()
        yield* turn.pipe(Effect.andThen(connections), Effect.repeat({ until: (size) => size === 0 }))
        expect(yield* first(port)).toBe("220")
      })
    ))

  test("more connections a minute than allowed get 421, until time has passed", () =>
    run(
      Effect.gen(function* () {
        const { port } = yield* serve(Mailboxes.make([]), { limits: { connectionsPerMinute: 2 } })
        expect(yield* Effect.forEach([1, 2, 3], () => first(port))).toEqual(["220", "220", "421"])
        yield* TestClock.adjust("30 seconds")
        expect(yield* Effect.forEach([1, 2], () => first(port))).toEqual(["220", "421"])
      })
    ))

  test("more recipients a minute than allowed get 450, from all connections of the address", () =>
    run(
      Effect.gen(function* () {
        const { port } = yield* serve(Mailboxes.make([ANNA]), { limits: { recipientsPerMinute: 3 } })
        const lines = [BEGIN[0] ?? "", `RCPT TO:<${ANNA}>`, `RCPT TO:<nobody@${DOMAIN}>`]
        expect(yield* Client.codes(yield* Client.greeted(port), lines)).toEqual(["250", "250", "550"])
        expect(yield* Client.codes(yield* Client.greeted(port), lines)).toEqual(["250", "250", "450"])
        yield* TestClock.adjust("1 minute")
        expect(yield* Client.codes(yield* Client.greeted(port), lines)).toEqual(["250", "250", "550"])
      })
    ))

  test("who tries addresses gets 421 after twenty", () =>
    run(
      Effect.gen(function* () {
        const client = yield* Client.greeted((yield* serve(Mailboxes.make([ANNA]))).port)
        const lines = [BEGIN[0] ?? "", ...Array.from({ length: 20 }, (_, i) => `RCPT TO:<guess${i}@${DOMAIN}>`)]
        yield* Client.codes(client, lines)
        expect(yield* client.answer).toMatch(/^421 /u)
        expect(yield* client.answer).toBe("end")
      })
    ))

  test.each([
    { name: "an endless command", bytes: "x".repeat(5_000) },
    { name: "ten commands that do not exist", bytes: "FOO\r\n".repeat(10) },
    { name: "a request of HTTP", bytes: "POST / HTTP/1.1\r\n" }
  ])("$name ends the session with 421", ({ bytes }) =>
    run(
      Effect.gen(function* () {
        const client = yield* Client.greeted((yield* serve(Mailboxes.make([]))).port)
        yield* client.write(bytes)
        expect(yield* Effect.repeat(client.answer, { until: (answer) => !answer.startsWith("500") })).toMatch(/^421 /u)
        expect(yield* client.answer).toBe("end")
      })
    )
  )

  test("an idle client gets 421, and one that does not leave is dropped", () =>
    run(
      Effect.gen(function* () {
        const { port, connections } = yield* serve(Mailboxes.make([]), { limits: { idle: 200 } })
        const client = yield* Client.greeted(port)
        expect(yield* client.answer).toMatch(/^421 /u)
        expect(yield* client.answer).toBe("end")
        expect(client.socket.writable).toBe(true)
        yield* turn.pipe(Effect.andThen(connections), Effect.repeat({ until: (size) => size === 0 }))
      })
    ))

  test("a session that takes too long gets 421 though it is busy, and a client that does not leave is dropped", () =>
    run(
      Effect.gen(function* () {
        const { port, connections } = yield* serve(Mailboxes.make([ANNA]), { limits: { session: "1 minute" } })
        const slow = yield* Client.greeted(port)
        yield* Client.codes(slow, BEGIN)
        yield* slow.write("S")
        yield* TestClock.adjust("70 seconds")
        expect(yield* slow.answer).toMatch(/^421 /u)
        expect(yield* slow.answer).toBe("end")
        expect(yield* connections).toBe(1)
        yield* TestClock.adjust("10 seconds")
        yield* turn
        expect(yield* connections).toBe(0)
      })
    ))
})

describe("stop", () => {
  test("a message in flight gets its answer, idle sessions and new connections 421, and then nothing listens", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const scope = yield* Scope.make()
        const { port } = yield* Effect.provideService(serve(mailboxes), Scope.Scope, scope)
        const busy = yield* Client.greeted(port)
        const idle = yield* Client.greeted(port)
        yield* Client.codes(busy, BEGIN)
        yield* busy.write("Subject: half\r\n")
        const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
        expect(yield* idle.answer).toMatch(/^421 /u)
        idle.socket.end()
        const late = yield* Client.open(port)
        expect(yield* late.answer).toMatch(/^421 /u)
        expect(stopped.pollUnsafe()).toBeUndefined()
        expect(yield* busy.ask("\r\nwhole\r\n.")).toMatch(/^250 /u)
        expect(yield* busy.answer).toMatch(/^421 /u)
        busy.socket.end()
        yield* Fiber.join(stopped)
        expect(mailboxes.taken.get(ANNA)).toHaveLength(1)
        const refused = yield* Client.open(port)
        expect(yield* refused.answer).toBe("end")
      })
    ))

  test("it waits no longer than its bound", () =>
    run(
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { port } = yield* Effect.provideService(serve(Mailboxes.make([ANNA])), Scope.Scope, scope)
        const busy = yield* Client.greeted(port)
        yield* Client.codes(busy, BEGIN)
        const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
        yield* TestClock.adjust("9 seconds")
        expect(stopped.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust("1 seconds")
        yield* Fiber.join(stopped)
        expect(yield* busy.answer).toBe("end")
      })
    ))
})
