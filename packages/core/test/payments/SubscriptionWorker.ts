/**
 * A host that maintains subscriptions: `node SubscriptionWorker.ts <store> <milliseconds its clock is ahead> <type or none>`. It prints `ready`,
 * and for each line with accounts it advances all of their subscriptions at once and prints `advanced`. It is killed the moment an event of the
 * type is in the log.
 */
import { join } from "node:path"
import { createInterface } from "node:readline"
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { PostgresStores } from "@millrace/event-store-postgres"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Layer, Logger, Stream } from "effect"
import * as WrongClock from "../../../testing/src/WrongClock.ts"
import { type Known, PaymentGateway, type Standing } from "../../src/payments/PaymentGateway.ts"
import type { Store } from "../jobs/Worker.ts"
import { host } from "./SubscriptionHosts.ts"

/** Takes each payment as soon as it is begun, and remembers in the reference what it took: all processes know the same. */
const gateway: Layer.Layer<PaymentGateway> = Layer.sync(PaymentGateway, () => {
  const standing = ({ reference }: Known) =>
    Effect.succeed<Standing>({
      ...{ status: "captured", captured: Number(reference), agreement: "means_1" },
      ...{ reason: null, refunds: [], disputes: [] }
    })
  return {
    name: "instant",
    begin: ({ amount }) =>
      Effect.succeed({ reference: String(amount.minor), next: { _tag: "ClientSecret" as const, clientSecret: "secret" } }),
    capture: standing,
    standing,
    refund: standing,
    notice: () => Effect.succeed([])
  }
})

const storesOf = (store: Store) =>
  store.kind === "postgres"
    ? PostgresStores.layer(store)
    : Layer.mergeAll(
        SqliteEventStore.layer({ filename: join(store.folder, "events.db") }),
        SqliteStateStore.layer({ filename: join(store.folder, "state.db") })
      )

/** The stores, of which the log kills this process after it has appended an event of the type. */
export const open = Effect.fnUntraced(function* (store: Store, fatal?: string) {
  const context = yield* Layer.build(Layer.provide(storesOf(store), Logger.layer([])))
  const { events, states } = yield* Effect.provideContext(
    Effect.all({ events: EventStore.EventStore, states: StateStore.StateStore }),
    context
  )
  const killed = Effect.andThen(
    Effect.sync(() => process.kill(process.pid, "SIGKILL")),
    Effect.never
  )
  const append: typeof events.append = (...args) =>
    Effect.tap(events.append(...args), () => (args[2].some(({ type }) => type === fatal) ? killed : Effect.void))
  return { events: { ...events, append }, states }
})

/** Opens a host whose clock is ahead by so many milliseconds; that of the stores is right. */
export const ahead = Effect.fnUntraced(function* (stores: Effect.Success<ReturnType<typeof open>>, millis: number, upkeep = false) {
  const clock = yield* WrongClock.make({ ahead: millis })
  const opened = host(stores, { gateway: gateway as Layer.Layer<never>, upkeep, pays: upkeep })
  return yield* Effect.provideService(opened, Clock.Clock, clock)
})

const [store, millis, fatal] = process.argv.slice(2)
if (import.meta.main && store !== undefined) {
  const main = Effect.gen(function* () {
    const { subscriptions } = yield* ahead(yield* open(JSON.parse(store), fatal), Number(millis), fatal !== "none")
    console.log("ready")
    yield* Stream.runForEach(Stream.fromAsyncIterable(createInterface(process.stdin), String), (accounts) =>
      Effect.forEach(accounts.split(" "), (account) => subscriptions.advance(account.slice(4)), { concurrency: "unbounded" }).pipe(
        Effect.andThen(Effect.sync(() => console.log("advanced")))
      )
    )
    yield* Effect.never
  })
  await Effect.runPromise(main.pipe(Effect.scoped))
}
