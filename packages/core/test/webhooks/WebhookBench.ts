/** Hosts that deliver webhooks to receivers whose answers a test sets. Each host stands for a process over shared stores. */
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Exit, Layer, Scope, Stream } from "effect"
import { Registration } from "../../src/accounts/Registration.ts"
import { Jobs } from "../../src/jobs/Jobs.ts"
import * as Millrace from "../../src/Millrace.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { WebhookDelivery } from "../../src/webhooks/WebhookDelivery.ts"
import { type Answer, type Message, type WebhookNotSent, WebhookSender } from "../../src/webhooks/WebhookSender.ts"
import { Webhooks } from "../../src/webhooks/Webhooks.ts"
import { type Stores, way } from "../billing/Bench.ts"
import { MASTER } from "../vault/Vaults.ts"

/** A message that a receiver got. */
export interface Post extends Message {
  readonly host: string
}

export interface Receivers {
  /** Every message that was sent, in order, whatever was answered. */
  readonly posts: Array<Post>
  answer: (post: Post) => Effect.Effect<Answer, WebhookNotSent>
}

export const OK: Answer = { status: 204, retryAfter: undefined }

export const receivers = (): Receivers => ({ posts: [], answer: () => Effect.succeed(OK) })

const senderOf = (to: Receivers, host: string): WebhookSender["Service"] => ({
  check: () => Effect.void,
  send: (message) =>
    Effect.suspend(() => {
      const post = { ...message, host }
      to.posts.push(post)
      return to.answer(post)
    })
})

let hosts = 0

/** Opens a process. It ends with the scope. */
export const host = (shared: Stores, to: Receivers, options: Millrace.WebhookOptions = {}, name = `host${++hosts}`) =>
  Effect.gen(function* () {
    const { events, states, ...faults } = way(shared)
    const base = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, events),
      Layer.succeed(StateStore.StateStore, states),
      Layer.orDie(MasterKey.layer(MASTER)),
      Layer.succeed(WebhookSender, senderOf(to, name))
    )
    const domain = Jobs.layer().pipe(Layer.provideMerge(Millrace.administration()))
    const layer = Millrace.webhooks({ drain: 0, ...options }).pipe(Layer.provideMerge(domain))
    const context = yield* Layer.build(Layer.fresh(Layer.provideMerge(layer, base)))
    const services = Effect.all({ webhooks: Webhooks, registration: Registration, vault: Vault })
    const delivery = yield* Effect.provideContext(Effect.serviceOption(WebhookDelivery), context)
    let opened = 0
    const { registration, ...others } = yield* Effect.provideContext(services, context)
    return {
      ...faults,
      ...others,
      registration,
      name,
      delivery,
      /** Runs an effect with the services of this process. */
      run: <A, E>(effect: Effect.Effect<A, E, StateStore.StateStore | EventStore.EventStore | Jobs>) =>
        Effect.provideContext(effect, context),
      /** Opens an account, which is a notice. */
      open: () => Effect.suspend(() => registration.open({ reference: `${name}-${++opened}` }))
    }
  })
export type Host = Effect.Success<ReturnType<typeof host>>

/** A process that can be killed, after which nothing that it writes arrives, or stopped in an orderly way. */
export const mortalHost = (...args: Parameters<typeof host>) =>
  Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
    const mortal = yield* Effect.provideService(host(...args), Scope.Scope, scope)
    const stop = Scope.close(scope, Exit.void)
    return { ...mortal, stop, die: Effect.andThen(mortal.cut, stop) }
  })

/** The ids of the notices that accounts were opened, in the order of the log. */
export const openings = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) =>
    log.flatMap(({ id, type }) => (type === "AccountOpened" ? [`account_opened_${id}`] : []))
  )

/** All rows of a space of the state store. */
export const rowsOf = ({ states }: Stores, space: string) => states.list(space, { limit: 100_000 })
