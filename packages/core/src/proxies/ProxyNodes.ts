/**
 * The proxy nodes that serve now, of all hosts of a store, and the places that their connections leave from. A node announces itself in the
 * state store and renews its entry, so one that died is forgotten within half a minute.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Layer, Option, Schema, type Scope } from "effect"
import { Protocol } from "./ProxySession.ts"

export const ProxyNode = Schema.Struct({
  /** ISO 3166-1 alpha-2, in capitals. */
  country: Schema.String,
  region: Schema.NullOr(Schema.String),
  /** What clients connect to. */
  host: Schema.String,
  /** The port of each protocol that it speaks. */
  endpoints: Schema.NonEmptyArray(Schema.Struct({ protocol: Protocol, port: Schema.Int })),
  /** The addresses that its connections leave from. */
  exits: Schema.NonEmptyArray(Schema.String),
  /** Of a place that is reached through other proxies: how many of them are alive. */
  members: Schema.optionalKey(Schema.Int)
})
export type ProxyNode = typeof ProxyNode.Type

const SPACE = "proxyNodes"
/** The most nodes that are read. */
const LIMIT = 1_000
const FORGOTTEN_AFTER = Duration.toMillis("30 seconds")
const RENEWED_EVERY = "10 seconds"

const Row = Schema.fromJsonString(ProxyNode)
const encodeRow = Schema.encodeSync(Row)
const decodeRow = Schema.decodeUnknownOption(Row)

const make = Effect.gen(function* () {
  const store = yield* StateStore.StateStore

  const announce = Effect.fnUntraced(function* (id: string, current: ProxyNode | (() => ProxyNode)) {
    const node = typeof current === "function" ? current() : current
    const expiresAt = (yield* Clock.currentTimeMillis) + FORGOTTEN_AFTER
    yield* store.write([{ _tag: "put", space: SPACE, key: id, value: Buffer.from(encodeRow(node)), expiresAt }])
  })

  return {
    /** The nodes, by id, with an entry for each place. An entry that a later release wrote, and this one cannot read, is left out. */
    list: Effect.map(store.list(SPACE, { limit: LIMIT }), (entries) =>
      entries.flatMap(({ value }) => Option.toArray(decodeRow(Buffer.from(value).toString())))
    ),
    /**
     * Announces a node until the scope closes; a function is asked each time, so that a node can change. A node with several places has an
     * entry for each. Fails if it cannot be announced at first.
     */
    keep: (
      id: string,
      node: ProxyNode | (() => ProxyNode)
    ): Effect.Effect<void, StateStore.StateConflict | StateStore.StateUnavailable, Scope.Scope> =>
      Effect.gen(function* () {
        yield* Effect.acquireRelease(announce(id, node), () => Effect.ignore(store.write([{ _tag: "remove", space: SPACE, key: id }])))
        // A renewal that fails is followed by the next
        yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.ignore(announce(id, node)), RENEWED_EVERY)))
      })
  }
})

export class ProxyNodes extends Context.Service<ProxyNodes, Effect.Success<typeof make>>()("@millrace/core/proxies/ProxyNodes") {
  static readonly layer: Layer.Layer<ProxyNodes, never, StateStore.StateStore> = Layer.effect(this, make)
}
