/**
 * Events a second, beside reading them and nothing else: by a host that replays every account from its first event, hashes verified, as it does
 * before an account's first command; and by an audit, which asks every rule after every event as well.
 */
import { Audit } from "@millrace/audit"
import { Ledger, PricePlan, Standard } from "@millrace/core"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import { stores } from "./host.ts"
import * as ledgers from "./ledgers.ts"
import { compare, type Options, withFolder } from "./measure.ts"

const EVENTS = 200_000

export const run = (options: Options) =>
  withFolder(async (folder) => {
    const on = <A, E>(effect: Effect.Effect<A, E, EventStore.EventStore>) => Effect.runPromise(Effect.provide(effect, stores(folder)))
    await on(
      Effect.asVoid(
        Effect.provide(
          PricePlan.PriceBook.use((book) => book.plan),
          PricePlan.PriceBook.layerOf(PricePlan.ownOf(Standard.operations))
        )
      )
    )
    const accounts = await on(ledgers.write(EVENTS, 200))
    const timed = async (effect: Effect.Effect<number, unknown, EventStore.EventStore>) => {
      const began = performance.now()
      return ((await on(Effect.orDie(effect))) / (performance.now() - began)) * 1000
    }
    const read = EventStore.EventStore.use((store) =>
      Stream.runFold(
        store.readAll(EventStore.start),
        () => 0,
        (n) => n + 1
      )
    )
    const replay = Ledger.use((ledger) =>
      Effect.map(
        Effect.forEach(accounts, (id) => ledger.read(id)),
        (read) => read.reduce((events, { revision }) => events + revision + 1, 0)
      )
    ).pipe(Effect.provide(Ledger.layer()))
    const audit = Effect.map(Audit.run(), ({ events, ok, problems }) => {
      if (!ok) throw new Error(JSON.stringify(problems[0]))
      return events
    })
    const beside = (contender: string, effect: Parameters<typeof timed>[0]) =>
      compare({ read: () => timed(read), [contender]: () => timed(effect) }, { ...options, millis: 0 })
    // The audit first: a process that audits replays nothing else
    const audited = await beside("audit", audit)
    const result = { ...audited, ...(await beside("replay", replay)) }
    return Object.entries(result).map(([name, { rate, ratio }]) => ({ name, "events/s": rate, ratio }))
  })
