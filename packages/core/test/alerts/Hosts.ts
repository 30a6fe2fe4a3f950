/** Several processes over the same stores that take up prices and send the mails of price alerts. */
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { type Duration, Effect, Layer, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { test } from "vitest"
import { MailNotSent, MailRelay, type OutgoingMail } from "../../src/accounts/MailRelay.ts"
import { PublicAddress } from "../../src/accounts/PublicAddress.ts"
import { Registration } from "../../src/accounts/Registration.ts"
import { PriceAlerts } from "../../src/alerts/PriceAlerts.ts"
import { PriceAlertUpkeep } from "../../src/alerts/PriceAlertUpkeep.ts"
import { newReservationId } from "../../src/Ids.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { PriceObservations } from "../../src/prices/PriceObservations.ts"
import { identityOf } from "../../src/prices/ProductIdentity.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { MASTER } from "../vault/Vaults.ts"

export interface Stores {
  readonly events: EventStore.EventStore["Service"]
  readonly states: StateStore.StateStore["Service"]
}

export const stores: Effect.Effect<Stores> = Effect.all({ events: MemoryEventStore.make, states: MemoryStateStore.make })

/** `lost`: it arrived, and the answer did not. `hangs`: nothing is known for ever. */
export type Fate = "sent" | "refused" | "lost" | "hangs"

/** A mail that was handed to a relay. */
export interface Posted {
  readonly mail: OutgoingMail
  readonly fate: Fate
}

/** Keeps what is handed to it, and does with each mail as it is told, after a while. */
export const relayOf = (posted: Array<Posted>, fateOf: (mail: OutgoingMail) => Fate, takes: Duration.Input = 0): Layer.Layer<MailRelay> =>
  Layer.succeed(MailRelay, {
    configured: Effect.void,
    send: (mail) =>
      Effect.suspend(() => {
        const fate = fateOf(mail)
        posted.push({ mail, fate })
        if (fate === "hangs") return Effect.never
        const error = new MailNotSent({ reason: "EENVELOPE 451", outcome: fate === "refused" ? "refused" : "unknown" })
        return Effect.andThen(Effect.sleep(takes), fate === "sent" ? Effect.void : Effect.fail(error))
      })
  })

const ADDRESS = Layer.succeed(PublicAddress, { url: Effect.succeed(new URL("https://api.example.com")), service: "Example" })

export interface Options {
  readonly relay?: Layer.Layer<MailRelay>
  readonly upkeep?: boolean
}

/** Opens a process. It ends with the scope. */
export const host = ({ events, states }: Stores, { relay = MailRelay.unconfigured, upkeep = true }: Options = {}) =>
  Effect.gen(function* () {
    const base = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, events),
      Layer.succeed(StateStore.StateStore, states),
      MasterKey.layer(MASTER),
      ADDRESS,
      relay
    )
    const layer = (upkeep ? PriceAlertUpkeep.layer() : Layer.empty).pipe(
      Layer.provideMerge(PriceAlerts.layer),
      Layer.provideMerge(Layer.merge(PriceObservations.layer, Registration.layer())),
      Layer.provideMerge(Layer.mergeAll(Ledger.layer(), Vault.layer)),
      Layer.provide(base)
    )
    const context = yield* Layer.build(Layer.fresh(layer))
    const services = Effect.all({ alerts: PriceAlerts, prices: PriceObservations, registration: Registration, ledger: Ledger })
    return yield* Effect.provideContext(services, context)
  })
export type Process = Effect.Success<ReturnType<typeof host>>

export const URL_OF_MUG = "https://shop.example.com/products/mug"

/** An account that may be mailed. */
export const verified = Effect.fnUntraced(function* ({ registration }: Process, email: string) {
  const accountId = yield* registration.open(email)
  yield* registration.verify(accountId)
  return accountId
})

export const register = Effect.fnUntraced(function* (
  { alerts }: Process,
  accountId: string,
  target: string,
  url = URL_OF_MUG,
  name = "Blue mug"
) {
  const reservationId = yield* newReservationId
  return yield* alerts.register({ accountId, identity: identityOf({ url }) ?? "", url, name, target, reservationId })
})

/** A host reads a price of a product. */
export const read = ({ prices }: Process, price: string, url = URL_OF_MUG, currency: string | null = null) =>
  prices.record([{ names: [{ url }], price, currency }])

/** Lets everything that is due happen: time goes on, and what runs in the background runs. */
export const pass = Effect.fnUntraced(function* (seconds: number, steps = 12) {
  for (let i = 0; i < steps; i++) {
    yield* TestClock.adjust((seconds * 1_000) / steps)
    for (let turn = 0; turn < 4; turn++) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
})

/** The types of the events of alerts, without what precedes a hyphen. */
export const typesIn = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) =>
    log.filter(({ stream }) => stream.startsWith("priceAlert-")).map(({ type }) => type)
  )

export const logText = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) => log.map((event) => JSON.stringify(event)).join("\n"))

export const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  test(name, () => Effect.runPromise(Effect.asVoid(body).pipe(Effect.scoped, Effect.provide(TestClock.layer()))))
