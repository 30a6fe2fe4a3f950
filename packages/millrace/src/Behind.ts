/** Whether this host sees what others append, for `/ready`: known of a log on KurrentDB, where one subscription feeds all who follow. */
import { KurrentDb } from "@millrace/event-store-kurrentdb"
import type { Readiness } from "@millrace/http"
import { Effect, Option } from "effect"

const followed = ({ status }: KurrentDb.KurrentDb["Service"]): Readiness.Check =>
  Effect.map(status, ({ connected, position, behind }) => {
    // Nobody asked for it yet
    if (position === undefined || connected) return undefined
    return behind === 0 ? "the subscription to the log is broken" : `the subscription to the log is broken, ${behind} bytes behind`
  })

export const checks: Effect.Effect<ReadonlyArray<Readiness.Check>> = Effect.map(
  Effect.serviceOption(KurrentDb.KurrentDb),
  Option.match({ onNone: () => [], onSome: (db) => [followed(db)] })
)
