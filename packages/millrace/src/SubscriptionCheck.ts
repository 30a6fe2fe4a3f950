/** For `/ready`: whether this host's subscription to a log on KurrentDB works. Without it, the host does not see what others append. */
import { KurrentDb } from "@millrace/event-store-kurrentdb"
import type { Readiness } from "@millrace/http"
import { Effect, Option } from "effect"

const followed = ({ status }: KurrentDb.KurrentDb["Service"]): Readiness.Check =>
  Effect.map(status, ({ connected, position, behind }) => {
    // No subscription was needed yet
    if (position === undefined || connected) return undefined
    return behind === 0 ? "the subscription to the log is broken" : `the subscription to the log is broken, ${behind} bytes behind`
  })

export const checks: Effect.Effect<ReadonlyArray<Readiness.Check>> = Effect.map(
  Effect.serviceOption(KurrentDb.KurrentDb),
  Option.match({ onNone: () => [], onSome: (db) => [followed(db)] })
)
