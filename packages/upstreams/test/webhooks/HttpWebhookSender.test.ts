/** Posts to real servers on loopback. What receivers verify is verified by the library of Standard Webhooks. */
import { WebhookSender } from "@millrace/core"
import { Effect, Redacted, type Scope } from "effect"
import fc from "fast-check"
import { Webhook } from "standardwebhooks"
import { describe, expect, test } from "vitest"
import * as HttpWebhookSender from "../../src/webhooks/HttpWebhookSender.ts"
import { nobody, serve } from "../shared/LocalService.ts"

const SECRETS = ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY="]

const message = (url: URL | string, body = '{"type":"job.ended"}') => ({
  url: String(url),
  secrets: SECRETS.map((secret) => Redacted.make(secret)),
  id: "job_ended_1",
  at: Date.now(),
  body
})

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope | WebhookSender>, options: HttpWebhookSender.Options = { allowPrivate: true }) =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(HttpWebhookSender.layer(options))))

const send = (...args: Parameters<typeof message>) => WebhookSender.use((sender) => sender.send(message(...args)))

describe("a message", () => {
  test("is posted as it is, and verified with any of its secrets and with no other, whatever it contains", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve((response) => response.writeHead(204).end())
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(fc.string({ unit: "binary" }), async (text) => {
              const body = JSON.stringify({ type: "job.ended", text })
              expect(await run(send(service.url, body))).toEqual({ status: 204, retryAfter: undefined })
              const received = await Effect.runPromise(service.received)
              const headers = received.headers as Record<string, string>
              expect(received).toMatchObject({ method: "POST", body })
              expect(headers).toMatchObject({ "content-type": "application/json", "webhook-id": "job_ended_1" })
              for (const secret of SECRETS) expect(new Webhook(secret).verify(received.body, headers)).toEqual(JSON.parse(body))
              const other = new Webhook("whsec_ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ")
              expect(() => other.verify(received.body, headers)).toThrow()
              expect(() => new Webhook(SECRETS[0] ?? "").verify(`${received.body} `, headers)).toThrow()
            }),
            { numRuns: 8 }
          )
        )
      })
    ))

  test("is answered with any status, and a redirect is not followed", () =>
    run(
      Effect.gen(function* () {
        for (const status of [200, 301, 307, 400, 410, 500]) {
          const service = yield* serve((response) => response.writeHead(status, { location: "/elsewhere" }).end("x".repeat(100_000)))
          expect(yield* send(service.url)).toEqual({ status, retryAfter: undefined })
          expect((yield* service.received).path).toBe("/")
        }
      })
    ))

  test("is answered with the time after which the receiver wants it again, in seconds or as a date", () =>
    run(
      Effect.gen(function* () {
        const at = new Date(Date.now() + 60_000).toUTCString()
        const texts: Readonly<Record<string, unknown>> = { "120": 120_000, [at]: expect.any(Number), soon: undefined }
        for (const [text, expected] of Object.entries(texts)) {
          const service = yield* serve((response) => response.writeHead(503, { "retry-after": text }).end())
          expect(yield* send(service.url)).toEqual({ status: 503, retryAfter: expected })
        }
      })
    ))
})

describe("a message that is not answered", () => {
  const reasons = <E>(sent: Effect.Effect<unknown, E, WebhookSender>) => Effect.map(Effect.flip(sent), String)

  test("says why, without its address", () =>
    run(
      Effect.gen(function* () {
        const hangs = yield* serve(() => {})
        const closes = yield* serve((response) => response.destroy())
        const limited = Effect.provide(send(hangs.url), HttpWebhookSender.layer({ allowPrivate: true, timeLimit: "100 millis" }))
        const said = [yield* reasons(limited), yield* reasons(send(closes.url)), yield* reasons(send(yield* nobody))]
        yield* hangs.abandoned
        expect(said[0]).toContain("it exceeds the time limit")
        expect(said[1]).toMatch(/the connection failed: (?:UND_ERR_SOCKET|ECONNRESET)/u)
        expect(said[2]).toContain("the connection failed: ECONNREFUSED")
        for (const reason of said) expect(reason).not.toContain("127.0.0.1")
      })
    ))

  test("was not sent to an address behind this host", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve((response) => response.end())
        const inner = ["10.0.0.1", "127.0.0.1", "169.254.169.254", "[::1]", "[fd00::1]", "0x7f000001", "inner.example"]
        for (const name of inner) expect(yield* reasons(send(`https://${name}:${service.url.port}`))).toContain("no public address")
        expect(yield* reasons(send(service.url))).toContain("http is not allowed")
      }),
      { resolve: async () => [{ address: "192.168.1.1", family: 4 }] }
    ))

  test("was not sent to the metadata of a cloud, also where private addresses are allowed", () =>
    run(
      Effect.gen(function* () {
        for (const name of ["169.254.169.254", "168.63.129.16", "[fe80::1]", "0.0.0.0", "[::ffff:10.0.0.1]"])
          expect(yield* reasons(send(`http://${name}`))).toContain("no public address")
      })
    ))
})

test("an address is checked when it is given: https, public, without credentials", () =>
  run(
    Effect.gen(function* () {
      const { check } = yield* WebhookSender
      yield* check("https://receiver.example:8443/hook?token=1")
      const malformed = ["http://receiver.example", "ftp://receiver.example", "receiver.example", "", "https://a:b@receiver.example"]
      const closed = [
        "https://127.0.0.1/hook",
        "https://2130706433/hook",
        "https://[::1]/hook",
        "https://169.254.169.254/",
        "https://10.0.0.1"
      ]
      for (const url of [...malformed, ...closed]) expect(yield* Effect.flip(check(url))).toMatchObject({ _tag: "InvalidWebhookUrl" })
    }),
    {}
  ))
