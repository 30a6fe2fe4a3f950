import { EventStore, HashChain, MemoryEventStore, MemoryStateStore, StateStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { expect, test } from "vitest"
import * as Arbitraries from "../../../testing/src/Arbitraries.ts"
import { CallHistory, OUTCOMES, type PastCall, type Query } from "../../src/billing/CallHistory.ts"
import { Account } from "../../src/ledger/Account.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { toIso } from "../../src/Timestamp.ts"
import { Book, type Logged } from "../ledger/Replay.ts"
import { checkAsync } from "../vault/Property.ts"

const ACCOUNT = "acc_1"
const STREAM = StreamName.make(Account.category, ACCOUNT)

/** The history at a host whose log has these events. */
const historyOf = (log: ReadonlyArray<Logged>) =>
  Effect.gen(function* () {
    const events = yield* MemoryEventStore.make
    const states = yield* MemoryStateStore.make
    let hash = HashChain.start(STREAM)
    for (const [revision, { at, event }] of log.entries()) {
      const sealed = HashChain.seal(hash, STREAM, revision, { id: `event ${revision}`, ...Account.codec.encode(event) }, toIso(at), "{}")
      hash = HashChain.hashOf(sealed)
      yield* events.append(STREAM, revision === 0 ? "noStream" : revision - 1, [sealed])
    }
    const context = yield* Layer.build(
      Layer.fresh(CallHistory.layer).pipe(
        Layer.provide(Ledger.layer()),
        Layer.provide(Layer.mergeAll(Layer.succeed(EventStore.EventStore, events), Layer.succeed(StateStore.StateStore, states)))
      )
    )
    return (query: Query) =>
      Effect.provideContext(
        CallHistory.use((history) => history.read(ACCOUNT, query)),
        context
      )
  })

/** All calls of a query, page by page. */
const pages = Effect.fnUntraced(function* (read: Effect.Success<ReturnType<typeof historyOf>>, query: Query) {
  const calls: Array<PastCall> = []
  let before: number | undefined
  do {
    const page = yield* read({ ...query, ...(before === undefined ? {} : { before }) })
    expect(page.calls.length).toBeLessThanOrEqual(query.limit)
    calls.push(...page.calls)
    if (page.next !== null) expect(page.next).toBeLessThan(before ?? Number.POSITIVE_INFINITY)
    before = page.next ?? undefined
  } while (before !== undefined)
  return calls
})

/** The model: each call searches the whole log for its end and its refunds. */
const modelOf = (log: ReadonlyArray<Logged>): ReadonlyArray<Partial<PastCall>> =>
  log
    .flatMap(({ at: startedAt, event }) => {
      if (event._tag !== "CreditReserved" && event._tag !== "TrialReserved") return []
      const { operation, requestId, reservationId } = event
      const of = log.filter(({ event }) => "reservationId" in event && event.reservationId === reservationId)
      const success = of.find(({ event: { _tag } }) => _tag === "OperationSucceeded" || _tag === "TrialUsed")
      const released = of.find(({ event }) => event._tag === "TrialReleased" || (event._tag === "Refunded" && event.stage === "reserved"))
      const refunds = of.flatMap(({ event }) => (event._tag === "Refunded" && event.stage === "settled" ? [event.amount] : []))
      const charged = success?.event._tag === "OperationSucceeded" ? success.event.charged : 0
      const end = success ?? released
      return [
        {
          ...{ reservationId, requestId, operation, startedAt },
          outcome: end === undefined ? "running" : released !== undefined ? "released" : refunds.length > 0 ? "refunded" : "charged",
          charged: end === undefined ? null : charged,
          refunded: refunds.reduce((sum, amount) => sum + amount, 0),
          endedAt: end?.at ?? null,
          ...(released === undefined ? {} : { reason: ("reason" in released.event && released.event.reason) || "expired" })
        } as Partial<PastCall>
      ]
    })
    .reverse()

const log = Arbitraries.script({ minLength: 10, maxLength: 80 }).map((script) => {
  const book = new Book()
  for (const { at, command } of script) book.tell(command, at)
  return book.log
})

test("pages of any size have each call once, newest first, as the whole log says it ended", () =>
  checkAsync(
    fc.asyncProperty(
      log,
      fc.integer({ min: 1, max: 7 }),
      fc.option(fc.constantFrom(...OUTCOMES), { nil: undefined }),
      (log, limit, outcome) =>
        Effect.gen(function* () {
          yield* TestClock.setTime(log.at(-1)?.at ?? 0)
          const read = yield* historyOf(log)
          const model = modelOf(log).filter((call) => outcome === undefined || call.outcome === outcome)
          const calls = yield* pages(read, { limit, ...(outcome === undefined ? {} : { outcome }) })
          expect(calls).toEqual(model.map((call) => expect.objectContaining(call)))
          const operations = new Set(model.map(({ operation = "" }) => operation))
          for (const operation of operations)
            expect((yield* pages(read, { limit, operation, ...(outcome === undefined ? {} : { outcome }) })).length).toBe(
              model.filter((call) => call.operation === operation).length
            )
        }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)
    ),
    60
  ))
