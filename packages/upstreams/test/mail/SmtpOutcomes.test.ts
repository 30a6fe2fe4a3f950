/** Whether a mail that was not taken may have arrived: at a real server that fails at each step of the conversation. */
import { MailNotSent, MailRelay } from "@millrace/core"
import { Effect, type Scope } from "effect"
import PostalMime from "postal-mime"
import { describe, expect, test } from "vitest"
import * as SmtpRelay from "../../src/mail/SmtpRelay.ts"
import * as DroppingServer from "./DroppingServer.ts"

const MAIL = {
  to: "ada@example.com",
  subject: "Price alert: a mug",
  text: "It costs 9.90 now.\n",
  messageId: "fall-1@api.example.com",
  unsubscribe: "https://api.example.com/price-alerts/end?token=a.b"
}

const run = <A>(effect: Effect.Effect<A, never, Scope.Scope>): Promise<A> => Effect.runPromise(Effect.scoped(effect))

const sending = (port: number, timeLimit: `${number} millis` | `${number} seconds` = "5 seconds") =>
  MailRelay.use((relay) => relay.send(MAIL)).pipe(
    Effect.provide(SmtpRelay.layer({ url: new URL(`smtp://127.0.0.1:${port}`), from: "no-reply@example.com", timeLimit }))
  )

/** What became of a mail: taken, or why not; and how often it arrived. */
const fateOf = (script: DroppingServer.Script | undefined, timeLimit?: `${number} millis`) =>
  run(
    Effect.gen(function* () {
      const server = yield* DroppingServer.serve(() => script)
      const result = yield* Effect.result(sending(server.port, timeLimit))
      const fate =
        result._tag === "Success" ? "taken" : result.failure._tag === "MailNotSent" ? result.failure.outcome : result.failure._tag
      return { fate, arrived: server.arrived.length }
    })
  )

describe("a mail whose connection is lost", () => {
  const FATES = {
    greeting: "refused",
    ehlo: "refused",
    mail: "refused",
    rcpt: "refused",
    data: "refused",
    body: "unknown",
    dot: "unknown",
    taken: "taken"
  } as const satisfies Record<DroppingServer.Step, string>

  test.each(DroppingServer.STEPS)("at %s may have arrived or not", async (at) => {
    const { arrived, fate } = await fateOf({ at })
    expect(fate).toBe(FATES[at])
    // Whatever is said to be refused did not arrive
    expect(arrived).toBe(at === "dot" || at === "taken" ? 1 : 0)
  })

  test("before anybody listens is refused", async () => {
    const port = await run(Effect.map(Effect.scoped(DroppingServer.serve(() => undefined)), ({ port }) => port))
    expect(await run(Effect.orDie(Effect.flip(sending(port))))).toMatchObject({ outcome: "refused" })
  })
})

describe("a mail that is answered by a refusal", () => {
  test.each(["greeting", "mail", "rcpt", "data", "dot"] as const)("at %s is refused, now or for good", async (at) => {
    for (const instead of ["451 later", "554 never"]) expect((await fateOf({ at, instead })).fate).toBe("refused")
  })
})

describe("a mail that nothing is answered to", () => {
  test.each([
    ["rcpt", "refused", 0],
    ["data", "refused", 0],
    ["dot", "unknown", 1]
  ] as const)("at %s is %s, and is not sent any more", async (at, fate, arrived) => {
    expect(await fateOf({ at, instead: "silence" }, "500 millis")).toEqual({ fate, arrived })
  })
})

test("a mail has the id, and the address that ends such mails, that it was given", () =>
  run(
    Effect.gen(function* () {
      const server = yield* DroppingServer.serve(() => undefined)
      yield* Effect.orDie(sending(server.port))
      const { headers, messageId, text } = yield* Effect.promise(() => PostalMime.parse(server.arrived[0] ?? ""))
      const header = (name: string) => headers.filter(({ key }) => key === name).map(({ value }) => value)
      expect(messageId).toBe(`<${MAIL.messageId}>`)
      expect(header("list-unsubscribe")).toEqual([`<${MAIL.unsubscribe}>`])
      expect(header("list-unsubscribe-post")).toEqual(["List-Unsubscribe=One-Click"])
      expect(text?.trim()).toBe(MAIL.text.trim())
    })
  ))

test("an error that says nothing of its outcome counts as unknown", () => {
  expect(new MailNotSent({ reason: "a function threw" })).toMatchObject({ outcome: "unknown", isAddressRefused: false })
})
