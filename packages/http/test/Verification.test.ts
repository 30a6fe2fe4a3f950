/** Waits for verification codes as they are billed, over HTTP. */
import { Credits, Decisions, KeyRing, Ledger, Registration, SmsReceiver } from "@millrace/core"
import { Effect, Fiber, Layer, Logger, Redacted, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { Http, WebHandler } from "../src/index.ts"
import { api, eventually, PUBLIC_NUMBER, services, testing as within } from "./Host.ts"

interface Answer {
  readonly status: number
  readonly charged: string | null
  readonly data: unknown
}

interface Host {
  /** Calls, and can leave. */
  readonly wait: (given?: object) => Effect.Effect<Answer>
  readonly receive: (text: string) => Effect.Effect<unknown, unknown>
  readonly waiting: Effect.Effect<number>
  readonly balance: Effect.Effect<{ readonly available: number; readonly held: number }>
}

const FIELDS = { source: "sms", identifier: "example", phone_number: PUBLIC_NUMBER, timeout: 15 }
const FULL = { available: 10_000, held: 0 }

const testing = (name: string, body: (host: Host) => Effect.Effect<void, unknown, Scope.Scope>): void =>
  within(
    name,
    Effect.gen(function* () {
      const context = yield* Layer.build(Layer.fresh(Layer.provideMerge(services(), Logger.layer([]))))
      const run = Effect.provideContext(context)
      const { handle } = yield* run(WebHandler.make(Http.layer(api)))
      const receiver = yield* run(SmsReceiver)
      const ledger = yield* run(Ledger)
      const accountId = yield* run(Registration.use((registration) => registration.open("a@example.org")))
      yield* ledger.execute(accountId, Decisions.grant({ lotId: "lot_1", amount: Credits.of(10_000), source: "promotion" }))
      const { key } = yield* run(KeyRing.use((keys) => keys.issue(accountId)))
      const headers = { authorization: `Bearer ${Redacted.value(key)}`, "content-type": "application/json" }
      let count = 0
      yield* body({
        wait: (given = {}) =>
          Effect.promise(async (signal) => {
            const init = { method: "POST", headers, body: JSON.stringify({ ...FIELDS, ...given }), signal }
            const answer = await handle(new Request("http://localhost/api/v1/verify/wait", init))
            const { data } = (await answer.json()) as { readonly data: unknown }
            return { status: answer.status, charged: answer.headers.get("x-credits-charged"), data }
          }),
        receive: (text) => receiver.receive({ source: "host", id: `${++count}`, from: "Example", to: PUBLIC_NUMBER, text }),
        waiting: receiver.waiting,
        balance: Effect.orDie(Effect.map(ledger.balance(accountId), ({ available, held }) => ({ available, held })))
      })
    })
  )

describe("a wait for a verification code", () => {
  testing("holds its price first, and is charged with the code", ({ balance, receive, wait, waiting }) =>
    Effect.gen(function* () {
      const answer = yield* Effect.forkChild(wait(), { startImmediately: true })
      yield* eventually(waiting, (count) => count === 1)
      expect(yield* balance).toEqual({ available: 5_000, held: 5_000 })
      yield* receive("482913 is your Example code")
      expect(yield* Fiber.join(answer)).toMatchObject({
        status: 200,
        charged: "5",
        data: {
          code: "482913",
          sender: "Example",
          message: "482913 is your Example code",
          received_at: expect.stringMatching(/^1970-01-01T00:00:\d\d\.\d{3}Z$/u)
        }
      })
      expect(yield* balance).toEqual({ available: 5_000, held: 0 })
    })
  )

  testing("is charged without a code when its time is over", ({ balance, wait, waiting }) =>
    Effect.gen(function* () {
      const answer = yield* Effect.forkChild(wait(), { startImmediately: true })
      yield* eventually(waiting, (count) => count === 1)
      yield* TestClock.adjust("15 seconds")
      const nothing = { code: null, sender: null, message: null, received_at: null }
      expect(yield* Fiber.join(answer)).toEqual({ status: 200, charged: "5", data: nothing })
      expect(yield* balance).toEqual({ available: 5_000, held: 0 })
    })
  )

  testing("costs nothing when its caller leaves before", ({ balance, wait, waiting }) =>
    Effect.gen(function* () {
      const answer = yield* Effect.forkChild(wait(), { startImmediately: true })
      yield* eventually(waiting, (count) => count === 1)
      yield* Fiber.interrupt(answer)
      expect(yield* eventually(balance, ({ held }) => held === 0)).toEqual(FULL)
      expect(yield* waiting).toBe(0)
    })
  )

  testing("at a number that is not the host's is refused before anything is held", ({ balance, wait }) =>
    Effect.gen(function* () {
      expect(yield* wait({ phone_number: "+15005550002" })).toMatchObject({ status: 422, charged: null })
      expect(yield* balance).toEqual(FULL)
    })
  )
})
