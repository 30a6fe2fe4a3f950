/** What `/ready` says beside what every host says: of the log on KurrentDB, of the SMSC, and of the upstream proxies. */
import { Coupons, type KeyRing, type Ledger, Offers, type Recovery } from "@millrace/core"
import type { EventStore, StateStore } from "@millrace/event-sourcing"
import { KurrentDb } from "@millrace/event-store-kurrentdb"
import { Readiness } from "@millrace/http"
import { Effect, Layer, Option } from "effect"
import * as ProxySettings from "./ProxySettings.ts"
import * as SmsSettings from "./SmsSettings.ts"

/** Without its subscription to a log on KurrentDB, this host does not see the events of other hosts. */
const subscription = ({ status }: KurrentDb.KurrentDb["Service"]): Readiness.Check =>
  Effect.map(status, ({ connected, position, behind }) => {
    // No subscription was needed yet
    if (position === undefined || connected) return undefined
    return behind === 0 ? "the subscription to the log is broken" : `the subscription to the log is broken, ${behind} bytes behind`
  })

/** All hosts have the same SMSC: if they were not ready without it, nothing would be served at all. */
const smsc = ({ bound }: SmsSettings.Smsc["Service"]): Readiness.Check =>
  Effect.map(bound, (bound) => (bound ? undefined : "the SMSC is not connected, so its text messages do not arrive here"))

const proxy = (trouble: ProxySettings.Trouble["Service"]): Readiness.Check =>
  Effect.sync(() => {
    const why = trouble.current()
    return why === undefined ? undefined : `the upstreams of the proxy stay as they were: ${why}`
  })

/** A search that fails is no reason to take the host out of service: everything else works, and every other host may have the same index. */
const search =
  (of: string) =>
  ({ searchStatus }: Coupons["Service"] | Offers["Service"]): Readiness.Check =>
    Effect.map(searchStatus, ({ behind, stopped }) => {
      const why = stopped?.message ?? behind?.reason
      return why === undefined ? undefined : `the search of ${of} is behind: ${why}`
    })

type Needs = EventStore.EventStore | StateStore.StateStore | Ledger | KeyRing | Recovery

export const layer: Layer.Layer<Readiness.Readiness, never, Needs> = Layer.unwrap(
  Effect.gen(function* () {
    const db = yield* Effect.serviceOption(KurrentDb.KurrentDb)
    const connection = yield* Effect.serviceOption(SmsSettings.Smsc)
    const trouble = yield* Effect.serviceOption(ProxySettings.Trouble)
    const coupons = yield* Effect.serviceOption(Coupons)
    const offers = yield* Effect.serviceOption(Offers)
    const warnings = [
      ...Option.toArray(coupons).map(search("coupons")),
      ...Option.toArray(offers).map(search("offers")),
      ...Option.toArray(connection).map(smsc),
      ...Option.toArray(trouble).map(proxy)
    ]
    return Readiness.Readiness.layer(Option.toArray(db).map(subscription), warnings)
  })
)
