import { InboxFull, ReceiverUnavailable, UnknownAddress } from "@millrace/core"
import { Effect, Fiber, Latch, Logger, type Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { createTransport } from "nodemailer"
import { describe, expect, test } from "vitest"
import * as Client from "./Client.ts"
import { ANNA, BERT, DOMAIN, serve } from "./Host.ts"
import * as Mailboxes from "./Mailboxes.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide([TestClock.layer(), Logger.layer([])])))

const MESSAGE = "Subject: Hello\r\n\r\nYour code is 123456\r\n"

const begin = (to: ReadonlyArray<string> = [ANNA], from = "MAIL FROM:<sender@example.test>") => [
  from,
  ...to.map((address) => `RCPT TO:<${address}>`),
  "DATA"
]

/** Sends a message and gives the answer after its last dot. */
const deliver = (client: Client.Client, to: ReadonlyArray<string> = [ANNA], message = MESSAGE) =>
  Effect.andThen(Client.codes(client, begin(to)), Effect.andThen(client.write(`${message}.\r\n`), client.answer))

const texts = (mailboxes: Mailboxes.Mailboxes, address: string) =>
  (mailboxes.taken.get(address) ?? []).map(({ raw }) => Buffer.from(raw).toString("latin1"))

/** Until the event loop has done what it has now. */
const turn = Effect.promise(() => new Promise<void>((resume) => setImmediate(() => setImmediate(resume))))

describe("delivery", () => {
  test("a message of nodemailer is taken as it came, and its queue id is in the answer", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const { port } = yield* serve(mailboxes)
        const transport = createTransport({ host: "127.0.0.1", port, secure: false })
        const { response } = yield* Effect.promise(() =>
          transport.sendMail({ from: "Shop <shop@example.test>", to: ANNA, subject: "Grüße", text: ".one\n..two\n", date: new Date(0) })
        )
        const [taken] = mailboxes.taken.get(ANNA) ?? []
        expect(response).toBe(`250 2.6.0 OK queued as ${taken?.queueId}`)
        expect(taken?.queueId).toMatch(/^[0-9a-f]{32}$/u)
        expect(taken).toMatchObject({ sender: "shop@example.test", remoteAddress: "127.0.0.1", authentication: { spf: null } })
        expect(Buffer.from(taken?.raw ?? []).toString()).toMatch(/^From: Shop <shop@example\.test>\r\n.*\r\n\r\n\.one\r\n\.\.two\r\n$/su)
      })
    ))

  test("one message to several inboxes is one delivery each, under one queue id", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA, BERT])
        const client = yield* Client.greeted((yield* serve(mailboxes)).port)
        expect(yield* deliver(client, [ANNA, BERT, ANNA.toUpperCase()])).toMatch(/^250 /u)
        expect([texts(mailboxes, ANNA), texts(mailboxes, BERT)]).toEqual([[MESSAGE], [MESSAGE]])
        expect(mailboxes.taken.get(ANNA)?.[0]?.queueId).toBe(mailboxes.taken.get(BERT)?.[0]?.queueId)
      })
    ))

  test("a bounce has no sender, and each message its own queue id", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const client = yield* Client.greeted((yield* serve(mailboxes)).port)
        yield* deliver(client)
        yield* Client.codes(client, begin([ANNA], "MAIL FROM:<>"))
        yield* client.write(`${MESSAGE}.\r\n`)
        yield* client.answer
        const taken = mailboxes.taken.get(ANNA) ?? []
        expect(taken.map(({ sender }) => sender)).toEqual(["sender@example.test", null])
        expect(new Set(taken.map(({ queueId }) => queueId)).size).toBe(2)
      })
    ))

  test("the answer waits until the message is durable", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const begun = yield* Latch.make()
        const durable = yield* Latch.make()
        mailboxes.receiving.set(ANNA, Effect.andThen(begun.open, durable.await))
        const client = yield* Client.greeted((yield* serve(mailboxes)).port)
        const answer = yield* Effect.forkChild(deliver(client))
        yield* begun.await
        expect(answer.pollUnsafe()).toBeUndefined()
        yield* durable.open
        expect(yield* Fiber.join(answer)).toMatch(/^250 /u)
      })
    ))
})

describe("recipients", () => {
  const codesFor = (mailboxes: Mailboxes.Mailboxes, lines: ReadonlyArray<string>, options = {}) =>
    Effect.gen(function* () {
      const client = yield* Client.greeted((yield* serve(mailboxes, options)).port)
      return yield* Client.codes(client, lines)
    })

  test("an unknown address, another domain and a route elsewhere are refused with 550, and the receiver is asked for its own domain alone", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const to = [`nobody@${DOMAIN}`, "anna@example.test", `anna@${DOMAIN}.example.test`, `anna%example.test@${DOMAIN}`, ANNA]
        expect(yield* codesFor(mailboxes, begin(to).slice(0, -1))).toEqual(["250", "550", "550", "550", "550", "250"])
        expect(mailboxes.asked.map(({ address }) => address)).toEqual([`nobody@${DOMAIN}`, `anna%example.test@${DOMAIN}`, ANNA])
      })
    ))

  test("452 when full, 451 when the receiver is unavailable or breaks", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA], [BERT])
        mailboxes.accepting.set(`down@${DOMAIN}`, Effect.fail(new ReceiverUnavailable({ reason: "no store" })))
        mailboxes.accepting.set(`bug@${DOMAIN}`, Effect.die(new Error("a bug")))
        const to = [BERT, `down@${DOMAIN}`, `bug@${DOMAIN}`, ANNA]
        expect(yield* codesFor(mailboxes, begin(to))).toEqual(["250", "452", "451", "451", "250", "354"])
      })
    ))

  test("451 when the receiver does not answer in time", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const asked = yield* Latch.make()
        mailboxes.accepting.set(ANNA, Effect.andThen(asked.open, Effect.never))
        const codes = yield* Effect.forkChild(codesFor(mailboxes, begin().slice(0, 2)))
        yield* asked.await
        yield* TestClock.adjust("10 seconds")
        expect(yield* Fiber.join(codes)).toEqual(["250", "451"])
      })
    ))

  test("the announced size is asked for, and 552 if it is too large", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const from = (size: number) => `MAIL FROM:<sender@example.test> SIZE=${size}`
        const lines = [from(10_485_761), from(10_485_760), `RCPT TO:<${ANNA}>`]
        expect(yield* codesFor(mailboxes, lines)).toEqual(["552", "250", "250"])
        expect(mailboxes.asked).toEqual([{ address: ANNA, bytes: 10_485_760 }])
      })
    ))

  test("more recipients than a message may have get 452", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA, BERT])
        expect(yield* codesFor(mailboxes, begin([ANNA, BERT]), { limits: { recipients: 1 } })).toEqual(["250", "250", "452", "354"])
      })
    ))
})

describe("one answer for all recipients", () => {
  const outcome = (receiving: Readonly<Record<string, Effect.Effect<void, UnknownAddress | InboxFull | ReceiverUnavailable>>>) =>
    Effect.gen(function* () {
      const mailboxes = Mailboxes.make([ANNA, BERT])
      const client = yield* Client.greeted((yield* serve(mailboxes)).port)
      for (const [address, result] of Object.entries(receiving)) mailboxes.receiving.set(address, result)
      const first = yield* deliver(client, [ANNA, BERT])
      for (const address of Object.keys(receiving)) mailboxes.receiving.delete(address)
      const second = yield* deliver(client, [ANNA, BERT])
      return { codes: [first.slice(0, 3), second.slice(0, 3)], mails: [texts(mailboxes, ANNA).length, texts(mailboxes, BERT).length] }
    })

  const unknown = Effect.fail(new UnknownAddress())
  const full = Effect.fail(new InboxFull())
  const down = Effect.fail(new ReceiverUnavailable({ reason: "no store" }))

  test.each([
    { name: "one is gone", receiving: { [ANNA]: unknown }, code: "451" },
    { name: "one is full", receiving: { [BERT]: full }, code: "451" },
    { name: "one cannot be asked", receiving: { [BERT]: down }, code: "451" },
    { name: "one is gone, one full", receiving: { [ANNA]: unknown, [BERT]: full }, code: "451" },
    { name: "one is gone, one cannot be asked", receiving: { [ANNA]: unknown, [BERT]: down }, code: "451" },
    { name: "both are gone", receiving: { [ANNA]: unknown, [BERT]: unknown }, code: "550" },
    { name: "both are full", receiving: { [ANNA]: full, [BERT]: full }, code: "452" }
  ])("$code if $name; the next attempt has the same queue id, so nobody takes it twice", ({ receiving, code }) =>
    run(
      Effect.gen(function* () {
        expect(yield* outcome(receiving)).toEqual({ codes: [code, "250"], mails: [1, 1] })
      })
    )
  )

  test("a message that was acknowledged is another when it is sent again", () =>
    run(
      Effect.gen(function* () {
        expect(yield* outcome({})).toEqual({ codes: ["250", "250"], mails: [2, 2] })
      })
    ))

  test("a message whose sender left before the answer is the same when it is sent again", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const begun = yield* Latch.make()
        const durable = yield* Latch.make()
        const { port, connections } = yield* serve(mailboxes)
        mailboxes.afterwards = Effect.andThen(begun.open, durable.await)
        const client = yield* Client.greeted(port)
        yield* Effect.forkChild(deliver(client))
        yield* begun.await
        client.socket.destroy()
        yield* turn.pipe(Effect.andThen(connections), Effect.repeat({ until: (size) => size === 0 }))
        yield* turn
        yield* durable.open
        yield* turn
        const answer = yield* deliver(yield* Client.greeted(port))
        expect(answer).toBe(`250 2.6.0 OK queued as ${mailboxes.taken.get(ANNA)?.[0]?.queueId}`)
        expect(texts(mailboxes, ANNA)).toEqual([MESSAGE])
      })
    ))
})

describe("bytes on the wire", () => {
  test("pipelined commands are answered in order, also in pieces of one byte", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const client = yield* Client.open((yield* serve(mailboxes)).port)
        yield* client.answer
        expect(yield* client.ask("EHLO client.test")).toMatch(/250-PIPELINING\n.*250-8BITMIME\n250-SMTPUTF8\n.*250[ -]SIZE 10485760/su)
        const all = [...begin(), `${MESSAGE}.`, ...begin(), `${MESSAGE}.`, "QUIT"].join("\r\n")
        for (const byte of Buffer.from(`${all}\r\n`)) client.socket.write(Uint8Array.of(byte))
        const answers = yield* Effect.forEach(Array.from({ length: 10 }), () => client.answer)
        expect(answers.map((answer) => answer.slice(0, 3))).toEqual(["250", "250", "354", "250", "250", "250", "354", "250", "221", "end"])
        expect(texts(mailboxes, ANNA)).toEqual([MESSAGE, MESSAGE])
      })
    ))

  test("dots are unstuffed, and only CR LF . CR LF ends a message; NUL, 8-bit and bare CR or LF stay", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const client = yield* Client.greeted((yield* serve(mailboxes)).port)
        yield* Client.codes(client, begin())
        const message = ["..", "...two", "\0\x80\xff", "a\n.\nMAIL FROM:<x@example.test>\n.\r", "b\r.\rc", ""].join("\r\n")
        yield* client.write(Buffer.from(`${message}.\r\n`, "latin1"))
        expect(yield* client.answer).toMatch(/^250 /u)
        expect(texts(mailboxes, ANNA)).toEqual([message.replaceAll("\r\n..", "\r\n.").replace(/^\.\./u, ".")])
        expect(yield* client.ask("NOOP")).toMatch(/^250 /u)
      })
    ))

  test("a message of dots, which comes in as many pieces, is taken whole", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const client = yield* Client.greeted((yield* serve(mailboxes)).port)
        yield* Client.codes(client, begin())
        yield* client.write(`${"..\r\nab\r\n".repeat(5_000)}.\r\n`)
        expect(yield* client.answer).toMatch(/^250 /u)
        expect(texts(mailboxes, ANNA)).toEqual([".\r\nab\r\n".repeat(5_000)])
      })
    ))

  test("lines of a message may be long, and an address may be in UTF-8", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const client = yield* Client.greeted((yield* serve(mailboxes)).port)
        yield* Client.codes(client, begin([ANNA], "MAIL FROM:<jos\u00e9@ex\u00e4mple.test> SMTPUTF8 BODY=8BITMIME"))
        const message = `Subject: Long\r\n\r\n${"x".repeat(1_000_000)}\r\n`
        yield* client.write(`${message}.\r\n`)
        expect(yield* client.answer).toMatch(/^250 /u)
        expect(texts(mailboxes, ANNA)).toEqual([message])
        expect(mailboxes.taken.get(ANNA)?.[0]?.sender).toBe("jos\u00e9@ex\u00e4mple.test")
      })
    ))

  test("BDAT and CHUNKING, AUTH, XCLIENT, VRFY of addresses and STARTTLS without a certificate are not there", () =>
    run(
      Effect.gen(function* () {
        const client = yield* Client.open((yield* serve(Mailboxes.make([ANNA]))).port)
        yield* client.answer
        expect(yield* client.ask("EHLO client.test")).not.toMatch(/CHUNKING|BINARYMIME|AUTH|STARTTLS|XCLIENT|DSN/u)
        expect(yield* Client.codes(client, begin().slice(0, 2))).toEqual(["250", "250"])
        const lines = [
          "BDAT 5 LAST",
          "AUTH PLAIN AGEAYg==",
          "STARTTLS",
          "XCLIENT ADDR=192.0.2.1",
          "WIZ a",
          "MAIL FROM:<a@b.test> BODY=BINARYMIME"
        ]
        expect(yield* Client.codes(client, lines)).toEqual(["500", "500", "500", "500", "500", "503"])
        expect(yield* client.ask(`VRFY ${ANNA}`)).not.toContain("anna")
      })
    ))

  /** Pieces of sessions, whole and broken. */
  const piece = fc.oneof(
    fc.constantFrom(
      "EHLO x\r\n",
      "HELO\r\n",
      "MAIL FROM:<a@b.test>\r\n",
      "MAIL FROM:<>\r\n",
      "DATA\r\n",
      ".\r\n",
      "\r\n",
      "\n",
      "\r",
      "RSET\r\n"
    ),
    fc.constantFrom(
      `RCPT TO:<${ANNA}>\r\n`,
      "RCPT TO:<\0@x>\r\n",
      "MAIL FROM:<a@b> SIZE=-1\r\n",
      "STARTTLS\r\n",
      "BDAT 3\r\nabc",
      "NOOP\r\n",
      "QUIT\r\n"
    ),
    fc.string({ unit: "binary", maxLength: 40 })
  )

  test("whatever bytes come, other sessions go on and nothing is left", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const { port, connections } = yield* serve(mailboxes)
        const scripts = fc.sample(fc.array(piece, { maxLength: 30 }), { numRuns: 40, seed: 7 })
        const good = yield* Client.greeted(port)
        yield* Effect.forEach(
          scripts,
          (script) =>
            Effect.gen(function* () {
              const client = yield* Client.open(port)
              yield* client.answer
              yield* client.write(Buffer.from(`${script.join("")}\r\n.\r\nQUIT\r\n`, "latin1"))
              client.socket.end()
              yield* Effect.repeat(client.answer, { until: (answer) => answer === "end" })
            }),
          { concurrency: "unbounded" }
        )
        expect(yield* deliver(good)).toMatch(/^250 /u)
        yield* turn.pipe(Effect.andThen(connections), Effect.repeat({ until: (size) => size === 1 }))
      })
    ))
})
