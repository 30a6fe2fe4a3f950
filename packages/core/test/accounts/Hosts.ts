/** Several processes over the same stores: each with its own ledger, vault, registration and key ring. */
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Exit, Fiber, Layer, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { test } from "vitest"
import { KeyRing } from "../../src/accounts/KeyRing.ts"
import { MailRelay, type OutgoingMail } from "../../src/accounts/MailRelay.ts"
import { type Options, Registration } from "../../src/accounts/Registration.ts"
import { Sessions } from "../../src/accounts/Sessions.ts"
import { SessionUpkeep } from "../../src/accounts/SessionUpkeep.ts"
import { SignIn } from "../../src/accounts/SignIn.ts"
import { SignUps } from "../../src/accounts/SignUps.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { Payments } from "../../src/payments/Payments.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { MASTER } from "../vault/Vaults.ts"

export interface Stores {
  readonly events: EventStore.EventStore["Service"]
  readonly states: StateStore.StateStore["Service"]
}

export const stores: Effect.Effect<Stores> = Effect.all({ events: MemoryEventStore.make, states: MemoryStateStore.make })

/** Keeps the mails that a process sends. */
export const relayTo = (mails: Array<OutgoingMail>): Layer.Layer<MailRelay> =>
  Layer.succeed(MailRelay, { configured: Effect.void, send: (mail) => Effect.sync(() => void mails.push(mail)) })

/** Opens a process. It ends with the scope. */
export const host = ({ events, states }: Stores, { upkeep = false, ...options }: Options & { readonly upkeep?: boolean } = {}) =>
  Effect.gen(function* () {
    const mails: Array<OutgoingMail> = []
    const base = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, events),
      Layer.succeed(StateStore.StateStore, states),
      MasterKey.layer(MASTER)
    )
    const layer = Layer.mergeAll(SignIn.layer, upkeep ? SessionUpkeep.layer() : Layer.empty).pipe(
      Layer.provideMerge(Layer.mergeAll(SignUps.layer, Sessions.layer, relayTo(mails))),
      Layer.provideMerge(Layer.mergeAll(Registration.layer(options), KeyRing.layer, Payments.layer)),
      Layer.provideMerge(Layer.mergeAll(Ledger.layer(), Vault.layer)),
      Layer.provide(base)
    )
    const context = yield* Layer.build(Layer.fresh(layer))
    const services = Effect.all({
      ...{ registration: Registration, keys: KeyRing, payments: Payments, ledger: Ledger, vault: Vault },
      ...{ sessions: Sessions, signIn: SignIn, signUps: SignUps }
    })
    return { ...(yield* Effect.provideContext(services, context)), mails }
  })

/** The whole log, as text. */
export const logText = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) => log.map((event) => JSON.stringify(event)).join("\n"))

/** Types of the events of one stream, or all. */
export const typesIn = ({ events }: Stores, stream?: `${string}-${string}`) =>
  Effect.map(Stream.runCollect(stream === undefined ? events.readAll(EventStore.start) : events.readStream(stream)), (log) =>
    log.map(({ type }) => type)
  )

/** Runs an act while time goes on, since a store that fails is asked again after a pause. */
export const settle = Effect.fnUntraced(function* <A, E>(act: Effect.Effect<A, E>) {
  const fiber = yield* Effect.forkChild(Effect.exit(act))
  while (fiber.pollUnsafe() === undefined) {
    yield* TestClock.adjust("50 millis")
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
  const exit = yield* Fiber.join(fiber)
  // A fault of the store is an error that a caller can act on, never a defect
  return Exit.hasDies(exit) ? yield* Effect.die(new Error(`A defect: ${exit}`)) : exit
})

export const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  test(name, () => Effect.runPromise(Effect.asVoid(body).pipe(Effect.scoped, Effect.provide(TestClock.layer()))))
