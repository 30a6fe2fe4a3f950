import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as connectTls, type TLSSocket } from "node:tls"
import { SmtpServer } from "@millrace/upstreams/mail"
import { Effect, Exit, Fiber, Logger, Queue, Scope } from "effect"
import { TestClock } from "effect/testing"
import { createTransport } from "nodemailer"
import { describe, expect, test } from "vitest"
import * as Client from "./Client.ts"
import { ANNA, serve } from "./Host.ts"
import * as Mailboxes from "./Mailboxes.ts"
import * as SelfSigned from "./SelfSigned.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

/** Files of a certificate, and how they are replaced. */
const files = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "millrace-smtp-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )
  const paths: SmtpServer.CertificateFiles = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") }
  const put = ({ cert, key }: SelfSigned.SelfSigned) => {
    writeFileSync(paths.certificate, cert)
    writeFileSync(paths.key, key)
  }
  return { paths, put }
})

const withCertificate = Effect.gen(function* () {
  const { paths, put } = yield* files
  const certificate = SelfSigned.make("first")
  put(certificate)
  return { tls: paths, put, certificate }
})

const turn = Effect.promise(() => new Promise<void>((resume) => setImmediate(resume)))

const left = (connections: Effect.Effect<number>) => turn.pipe(Effect.andThen(connections), Effect.repeat({ until: (size) => size === 0 }))

/** A client that has begun TLS and had its greeting. */
const secured = (port: number, implicitTls: boolean) =>
  Effect.gen(function* () {
    const plain = implicitTls ? undefined : yield* Client.greeted(port)
    if (plain !== undefined) expect(yield* plain.ask("STARTTLS")).toMatch(/^220 /u)
    plain?.socket.removeAllListeners("data")
    const target = plain === undefined ? { port, host: "127.0.0.1" } : { socket: plain.socket }
    return yield* Effect.callback<TLSSocket>((resume) => {
      const socket = connectTls({ ...target, rejectUnauthorized: false })
      socket.on("error", () => undefined)
      socket.once(implicitTls ? "data" : "secureConnect", () => resume(Effect.succeed(socket)))
    })
  })

/** The name in the certificate that the server shows from the first byte. */
const nameShown = (port: number) =>
  Effect.callback<string>((resume) => {
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      resume(Effect.succeed(String(socket.getPeerCertificate().subject.CN)))
      socket.destroy()
    })
  })

describe("TLS", () => {
  test.each([
    { name: "STARTTLS", implicitTls: false },
    { name: "implicit TLS", implicitTls: true }
  ])("nodemailer delivers by $name and trusts the certificate", ({ implicitTls }) =>
    run(
      Effect.gen(function* () {
        const { tls, certificate } = yield* withCertificate
        const mailboxes = Mailboxes.make([ANNA])
        const { port, connections } = yield* serve(mailboxes, { tls, implicitTls })
        const transport = createTransport({
          host: "127.0.0.1",
          port,
          secure: implicitTls,
          requireTLS: !implicitTls,
          tls: { ca: certificate.cert }
        })
        yield* Effect.promise(() => transport.sendMail({ from: "a@example.test", to: ANNA, text: "secret" }))
        expect(mailboxes.taken.get(ANNA)).toHaveLength(1)
        yield* left(connections)
      })
    )
  )

  test.each([
    { name: "says nothing", bytes: "" },
    { name: "stops within the handshake", bytes: "\x16\x03\x01\x02\x00\x01" },
    { name: "speaks in clear", bytes: "EHLO client.test\r\n" }
  ])("a client of implicit TLS that $name is dropped", ({ bytes }) =>
    run(
      Effect.gen(function* () {
        const { tls } = yield* withCertificate
        const { port, connections } = yield* serve(Mailboxes.make([ANNA]), { tls, implicitTls: true })
        const client = yield* Client.open(port)
        yield* client.write(Buffer.from(bytes, "latin1"))
        yield* turn.pipe(Effect.andThen(connections), Effect.repeat({ until: (size) => size === 1 }))
        yield* TestClock.adjust("16 minutes")
        expect(yield* client.answer).toBe("end")
        yield* left(connections)
      })
    )
  )

  test("what comes in clear behind STARTTLS is not obeyed", () =>
    run(
      Effect.gen(function* () {
        const { tls } = yield* withCertificate
        const mailboxes = Mailboxes.make([ANNA])
        const client = yield* Client.greeted((yield* serve(mailboxes, { tls })).port)
        yield* client.write(`STARTTLS\r\nMAIL FROM:<a@example.test>\r\nRCPT TO:<${ANNA}>\r\n`)
        expect(yield* client.answer).toMatch(/^220 /u)
        client.socket.removeAllListeners("data")
        const secure = yield* Effect.callback<ReturnType<typeof connectTls>>((resume) => {
          const socket = connectTls({ socket: client.socket, rejectUnauthorized: false }, () => resume(Effect.succeed(socket)))
          socket.on("error", () => undefined)
        })
        const answer = Effect.callback<string>((resume) => void secure.once("data", (bytes) => resume(Effect.succeed(String(bytes)))))
        secure.write(`RCPT TO:<${ANNA}>\r\n`)
        expect(yield* answer).toMatch(/^503 /u)
        expect(mailboxes.asked).toEqual([])
        secure.destroy()
      })
    ))

  test.each([
    { name: "STARTTLS", implicitTls: false },
    { name: "implicit TLS", implicitTls: true }
  ])("a stop ends sessions of $name, also those that do not leave", ({ implicitTls }) =>
    run(
      Effect.gen(function* () {
        const { tls } = yield* withCertificate
        const scope = yield* Scope.make()
        const { port, connections } = yield* Effect.provideService(serve(Mailboxes.make([ANNA]), { tls, implicitTls }), Scope.Scope, scope)
        const client = yield* secured(port, implicitTls)
        const ended = yield* Effect.forkChild(
          Effect.callback<void>((resume) => {
            for (const event of ["end", "close"]) client.once(event, () => resume(Effect.void))
          })
        )
        client.write(`EHLO client.test\r\nMAIL FROM:<a@example.test>\r\nRCPT TO:<${ANNA}>\r\nDATA\r\n`)
        yield* Effect.callback<void>((resume) => void client.on("data", (text) => String(text).includes("354") && resume(Effect.void)))
        const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
        expect(yield* connections).toBe(1)
        yield* TestClock.adjust("10 seconds")
        yield* Fiber.join(stopped)
        yield* Fiber.join(ended)
      })
    )
  )

  test("a new certificate is shown to new connections once the files changed; files that do not fit change nothing", () =>
    run(
      Effect.gen(function* () {
        const { tls, put, certificate } = yield* withCertificate
        const logged = yield* Queue.unbounded<string>()
        const log = Logger.make(({ logLevel }) => void Queue.offerUnsafe(logged, logLevel))
        const { port } = yield* Effect.provide(serve(Mailboxes.make([ANNA]), { tls, implicitTls: true }), Logger.layer([log]))
        const looked = Effect.andThen(TestClock.adjust("10 seconds"), Queue.take(logged))
        expect(yield* nameShown(port)).toBe("first")
        const next = SelfSigned.make("second")
        put({ ...next, key: certificate.key })
        expect(yield* looked).toBe("Warn")
        expect(yield* nameShown(port)).toBe("first")
        put(next)
        expect(yield* looked).toBe("Info")
        expect(yield* nameShown(port)).toBe("second")
      })
    ))

  test.each([
    { name: "a file is missing", change: () => undefined, reason: /ENOENT/u },
    { name: "a file is malformed", change: () => ({ cert: "x", key: "y" }), reason: /PEM/iu },
    { name: "the key is of another certificate", change: () => ({ ...SelfSigned.make(), key: SelfSigned.make().key }), reason: /mismatch/u }
  ])("it does not start if $name", ({ change, reason }) =>
    run(
      Effect.gen(function* () {
        const { paths, put } = yield* files
        const certificate = change()
        if (certificate !== undefined) put(certificate)
        const error = yield* Effect.flip(serve(Mailboxes.make([]), { tls: paths }))
        expect(error).toMatchObject({ _tag: "BadCertificate", reason: expect.stringMatching(reason) })
      })
    )
  )

  test("it does not start where something else listens, nor by implicit TLS without a certificate", () =>
    run(
      Effect.gen(function* () {
        const { port } = yield* serve(Mailboxes.make([]))
        expect(yield* Effect.flip(serve(Mailboxes.make([]), { port }))).toEqual(
          new SmtpServer.CannotListen({ host: "127.0.0.1", port, reason: "EADDRINUSE" })
        )
        expect(Exit.isFailure(yield* Effect.exit(serve(Mailboxes.make([]), { implicitTls: true })))).toBe(true)
      })
    ))
})
