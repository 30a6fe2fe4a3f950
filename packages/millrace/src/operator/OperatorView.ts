/** What operators read of this host: how it is, its accounts, holds that are overdue, jobs that wait, and the head of its log. */
import { readHead } from "@millrace/audit"
import { type AuthThrottle, CircuitBreaker, type Jobs, type Ledger, type Recovery, type Registration } from "@millrace/core"
import { EventStore, type StateStore } from "@millrace/event-sourcing"
import { OperatorRoutes, Readiness } from "@millrace/http"
import { Clock, Effect, Layer, type Redacted, Semaphore } from "effect"
import type { HttpRouter } from "effect/http"
import { VERSION } from "../Version.ts"
import { AccountList } from "./AccountList.ts"
import * as Accounts from "./Accounts.ts"
import * as Holds from "./Holds.ts"
import * as JobQueues from "./JobQueues.ts"

/** The services that the views read. */
export type Services =
  | CircuitBreaker
  | EventStore.EventStore
  | Jobs
  | Ledger
  | Readiness.Readiness
  | Recovery
  | Registration
  | StateStore.StateStore

/** Serves the views to whoever has the key. */
export const layer = (key: Redacted.Redacted): Layer.Layer<never, never, HttpRouter.HttpRouter | AuthThrottle | Services> =>
  Layer.unwrap(Effect.map(make, (views) => OperatorRoutes.layer(key, views))).pipe(Layer.provide(AccountList.layer))

const iso = (millis: number): string => new Date(millis).toISOString()

/** How this host is. It reads little, however long the log is. */
const overview = Effect.gen(function* () {
  const { projections, report } = yield* Readiness.Readiness
  const { circuits } = yield* CircuitBreaker
  const accounts = yield* AccountList
  const log = yield* EventStore.EventStore
  return Effect.gen(function* () {
    const list = yield* accounts.status
    const lag = list.stopped !== undefined || !list.caughtUp ? "the list of accounts has not caught up yet" : null
    return {
      at: iso(yield* Clock.currentTimeMillis),
      version: VERSION,
      ready: yield* report,
      projections: [
        ...(yield* projections).map(({ name, position, trouble }) => ({ name, position, trouble: trouble ?? null })),
        { name: "the list of accounts", position: list.position, trouble: lag }
      ],
      upstreams: (yield* circuits).map(({ failures, openFor, upstream }) => ({ upstream, failures, open_for_ms: openFor })),
      accounts: yield* accounts.count,
      position: yield* log.head
    }
  })
})

/** The head of the log, to note for an audit. It reads the whole log, so it is read once at a time. */
const head = Effect.gen(function* () {
  const turns = yield* Semaphore.make(1)
  const log = yield* EventStore.EventStore
  return turns.withPermit(Effect.provideService(readHead, EventStore.EventStore, log))
})

const make = Effect.gen(function* () {
  const [readOverview, readHeadNow] = [yield* overview, yield* head]
  const accounts = yield* Accounts.make
  const overdue = yield* Holds.make
  const jobs = yield* JobQueues.make
  const views: ReadonlyArray<OperatorRoutes.View> = [
    { path: "", read: () => readOverview },
    { path: "/accounts", query: Accounts.QUERY, read: accounts },
    { path: "/holds", read: () => overdue },
    { path: "/jobs", read: () => jobs },
    { path: "/head", read: () => readHeadNow }
  ]
  return views
})
