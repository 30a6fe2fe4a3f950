/** The contract of payment gateways: whatever fails on the way, money moves once, and no secret shows. */
import assert from "node:assert/strict"
import type { PaymentGateway } from "@millrace/core"
import { Effect, Logger, References, Result } from "effect"
import { begun, captured, newPayment, whole } from "./PaymentGatewayFixtures.ts"
import { FAULTS, type Fault, type GatewayContract } from "./PaymentProvider.ts"

type Subject = Parameters<GatewayContract[string]>[0]
type Failure = PaymentGateway.GatewayUnavailable | PaymentGateway.GatewayRefused

/** Requests of one act that fail, one after the other: more than are repeated. */
const TRIES = 6

/** An act on a new payment. */
type Act = (subject: Subject, id: string) => Effect.Effect<Effect.Effect<unknown, Failure>, unknown>

const ACTS: Readonly<Record<string, Act>> = {
  begin: ([gateway], id) => Effect.succeed(gateway.begin(newPayment(id))),
  capture: Effect.fnUntraced(function* (subject, id) {
    const known = yield* begun(subject, id)
    yield* subject[1].approve(known.reference)
    return Effect.map(subject[0].capture(known), (standing) => assert.deepEqual(standing, whole))
  }),
  standing: (subject, id) => Effect.map(captured(subject, id), (known) => subject[0].standing(known)),
  refund: (subject, id) => Effect.map(captured(subject, id), (known) => subject[0].refund(known, { refundId: `refund_${id}`, minor: 100 }))
}

/** How many requests an act makes where nothing fails, and where it is not the first act of its gateway, which may have to sign in. */
const requestsOf = Effect.fnUntraced(function* (subject: Subject, name: string, act: Act) {
  const [, provider] = subject
  yield* yield* act(subject, `first-${name}`)
  const run = yield* act(subject, `count-${name}`)
  const before = yield* provider.requests
  yield* run
  return (yield* provider.requests) - before
})

/** Runs an act whose requests fail from the `at`-th on, `times` of them, and then runs it again. */
const disturbed = Effect.fnUntraced(function* (
  subject: Subject,
  run: Effect.Effect<unknown, Failure>,
  at: number,
  fault: Fault,
  times: number
) {
  const [, provider] = subject
  yield* provider.fail([...Array.from({ length: at }, () => undefined), ...Array.from({ length: times }, () => fault)])
  const first = yield* Effect.result(run)
  yield* provider.fail([])
  yield* run
  return first
})

export const faults: GatewayContract = {
  *"an act that fails anywhere, in any way, can be done again, and is done once"(subject) {
    const [, provider] = subject
    for (const [name, act] of Object.entries(ACTS)) {
      const requests = yield* requestsOf(subject, name, act)
      for (const fault of FAULTS)
        for (let at = 0; at < requests; at++) {
          const run = yield* act(subject, `${name}-${fault}-${at}`)
          const before = yield* provider.made
          const first = yield* disturbed(subject, run, at, fault, TRIES)
          const what = `${name}, where request ${at} is ${fault}`
          assert.equal(Result.isFailure(first) ? first.failure._tag : "success", "GatewayUnavailable", what)
          const after = yield* provider.made
          assert.deepEqual(
            [after.payments - before.payments, after.captures - before.captures, after.refunds - before.refunds],
            [Number(name === "begin"), Number(name === "capture"), Number(name === "refund")],
            what
          )
        }
    }
  },

  *"a request without an answer, or that is asked to come again, is repeated"(subject) {
    for (const [name, act] of Object.entries(ACTS))
      for (const fault of ["away", "busy", "cut", "lost"] as const) {
        const run = yield* act(subject, `${name}-${fault}`)
        assert(Result.isSuccess(yield* disturbed(subject, run, 0, fault, 1)), `${name}, ${fault}`)
      }
  },

  *"no error and no log has a secret"(subject) {
    const [, provider] = subject
    const said: Array<string> = []
    const log = Logger.make(({ cause, message }) => void said.push(JSON.stringify([message, cause])))
    for (const [name, act] of Object.entries(ACTS))
      for (const fault of FAULTS) {
        const run = yield* act(subject, `${name}-${fault}`)
        const first = yield* disturbed(subject, run, 0, fault, TRIES).pipe(
          Effect.provide(Logger.layer([log])),
          Effect.provideService(References.MinimumLogLevel, "All")
        )
        if (Result.isFailure(first))
          said.push(String(first.failure), first.failure.message, first.failure.stack ?? "", JSON.stringify(first.failure))
      }
    assert(said.length > 0)
    for (const secret of provider.secrets) assert(!said.some((text) => text.includes(secret)), "A secret is told")
  }
}
