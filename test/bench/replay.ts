/** Events a second that an audit replays, hashes verified and every rule asked, beside reading them and nothing else. */
import { Audit } from "@millrace/audit"
import { PricePlan, Standard } from "@millrace/core"
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
    await on(ledgers.write(EVENTS, 200))
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
    const audit = Effect.map(Audit.run(), ({ events, ok, problems }) => {
      if (!ok) throw new Error(JSON.stringify(problems[0]))
      return events
    })
    const result = await compare({ read: () => timed(read), audit: () => timed(audit) }, { ...options, millis: 0 })
    return Object.entries(result).map(([name, { rate, ratio }]) => ({ name, "events/s": rate, ratio }))
  })
