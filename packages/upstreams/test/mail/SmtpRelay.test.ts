/** Mail to people by SMTP: to a real server, over a socket. */
import { EmailAddress, MailRelay, ReceiverUnavailable } from "@millrace/core"
import { Effect, Logger, Option, type Scope } from "effect"
import fc from "fast-check"
import PostalMime from "postal-mime"
import { describe, expect, test } from "vitest"
import * as SmtpRelay from "../../src/mail/SmtpRelay.ts"
import { ANNA, DOMAIN, serve } from "./Host.ts"
import * as Mailboxes from "./Mailboxes.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>, lines: Array<string> = []): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(effect).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(JSON.stringify(message)))])))
  )

const LINK = `https://api.example.com/sign-in#link_01JD7X2M9G4YQ0V5Z8K3T6W1RB.${"aB-_".repeat(10)}xyz`
const mailTo = (to: string) => ({
  to,
  subject: "Sign in to Müller",
  text: `Open this link:\n\n${LINK}\n\n.a line that begins with a dot\n`
})

const send = (port: number, to: string, credentials = "") =>
  MailRelay.use((relay) => relay.send(mailTo(to))).pipe(
    Effect.provide(
      SmtpRelay.layer({ url: new URL(`smtp://${credentials}127.0.0.1:${port}`), from: "no-reply@example.com", timeLimit: "5 seconds" })
    )
  )

describe("a mail", () => {
  test("arrives as it was written, with its link in one piece", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const { port } = yield* serve(mailboxes)
        yield* send(port, ANNA)
        const [taken, ...more] = mailboxes.taken.get(ANNA) ?? []
        expect(more).toEqual([])
        expect(taken?.sender).toBe("no-reply@example.com")
        const { from, headers, subject, text, to } = yield* Effect.promise(() => PostalMime.parse(taken?.raw ?? new Uint8Array()))
        expect([from?.address, to, subject]).toEqual(["no-reply@example.com", [{ name: "", address: ANNA }], "Sign in to Müller"])
        expect(text?.trim()).toBe(mailTo(ANNA).text.trim())
        expect(headers.find(({ key }) => key === "auto-submitted")?.value).toBe("auto-generated")
      })
    ))

  test("to an address that is refused for good says so, and neither the error nor the log names the address", async () => {
    const lines: Array<string> = []
    const error = await run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([])
        const error = yield* Effect.flip(send((yield* serve(mailboxes)).port, `nobody@${DOMAIN}`))
        expect(mailboxes.asked).toHaveLength(1)
        return error
      }),
      lines
    )
    expect(error).toMatchObject({ _tag: "MailNotSent", outcome: "refused", isAddressRefused: true })
    expect(error.message + lines.join("")).not.toContain("nobody")
  })

  test("that the relay does not take now fails, and so does one without a relay; neither names the address", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        mailboxes.accepting.set(ANNA, Effect.fail(new ReceiverUnavailable({ reason: "busy" })))
        const { port } = yield* serve(mailboxes)
        const closed = yield* Effect.scoped(Effect.map(serve(mailboxes), ({ port }) => port))
        for (const at of [port, closed]) {
          const error = yield* Effect.flip(send(at, ANNA))
          expect(error._tag).toBe("MailNotSent")
          expect(error.message).not.toContain("anna")
        }
      })
    ))

  test("is not sent with a password where the relay offers no TLS", () =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const { port } = yield* serve(mailboxes)
        const error = yield* Effect.flip(send(port, ANNA, "name:canary-password@"))
        expect(error._tag).toBe("MailNotSent")
        expect(error.message).not.toContain("canary")
        expect([mailboxes.asked, mailboxes.taken.get(ANNA)]).toEqual([[], []])
      })
    ))

  test("goes to its one address, whatever an address that is accepted looks like", () =>
    run(
      Effect.gen(function* () {
        const odd = fc.string({
          unit: fc.constantFrom(..."aZ0.+-_'`{}|~!#$%&*/=?^é,;:<>@()\"\\ \r\n\t\u0000\u2028".split("")),
          maxLength: 12
        })
        const mailboxes = Mailboxes.make([])
        const { port } = yield* serve(mailboxes)
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(odd, async (local) => {
              const address = EmailAddress.normalise(`${local}@${DOMAIN}`)
              fc.pre(address !== undefined)
              const before = mailboxes.asked.length
              await Effect.runPromise(Effect.option(send(port, address)).pipe(Effect.map(Option.isSome), Effect.provide(Logger.layer([]))))
              const asked = mailboxes.asked.slice(before).map((one) => one.address.toLowerCase())
              expect([[], [address]]).toContainEqual(asked)
            }),
            { numRuns: 60 }
          )
        )
        expect(mailboxes.asked.length).toBeGreaterThan(10)
      })
    ))
})
