/** What a node announces: itself, where it connects by itself, and each place that it reaches through other proxies. */
import { type ProxyNode, ProxyNodes } from "@millrace/core"
import { Array, Effect, Exit, Scope } from "effect"
import { isSamePlace, type Place, type UpstreamPool, type UpstreamPools } from "./UpstreamPool.ts"

export interface Announcing {
  readonly id: string
  readonly reached: Pick<ProxyNode, "host" | "endpoints">
  /** Where the node connects by itself, if it does. */
  readonly own: Place | undefined
  /** The node's own addresses. */
  readonly exits: ReadonlyArray<string>
  /** What stands for addresses that are not known. */
  readonly address: string
  readonly pools: UpstreamPools
}

const exitsOf = (exits: ReadonlyArray<string>, address: string): ProxyNode["exits"] =>
  Array.isReadonlyArrayNonEmpty(exits) ? exits : [address]

const ofPool = ({ address, reached }: Announcing, { alive, country, exits, region }: UpstreamPool): ProxyNode => ({
  ...{ ...reached, country, region, members: alive() },
  exits: exitsOf(exits, address)
})

/** The places of a node now: its own first. */
export const placesOf = (announcing: Announcing): ReadonlyArray<ProxyNode> => {
  const { address, exits, own, pools, reached } = announcing
  const ofPools = pools.current().map((pool) => ofPool(announcing, pool))
  if (own === undefined) return ofPools
  return [{ ...reached, country: own.country, region: own.region ?? null, exits: exitsOf(exits, address) }, ...ofPools]
}

/** The store does not answer. */
interface Unavailable {
  readonly message: string
}

/**
 * Announces the places until the scope closes. The effect that it returns announces places that are new, and withdraws those that are gone.
 * Both fail if the store does not answer.
 */
export const make = (announcing: Announcing): Effect.Effect<Effect.Effect<void, Unavailable>, Unavailable, ProxyNodes | Scope.Scope> =>
  Effect.gen(function* () {
    const nodes = yield* ProxyNodes
    const scope = yield* Effect.scope
    const kept = new Map<ProxyNode, Scope.Closeable>()
    let made = 0

    const keep = Effect.fnUntraced(function* (place: ProxyNode) {
      const now = () => placesOf(announcing).find((other) => isSamePlace(other, place)) ?? { ...place, members: 0 }
      const lives = yield* Scope.fork(scope)
      const id = made === 0 ? announcing.id : `${announcing.id}.${made}`
      yield* Effect.onError(Scope.provide(nodes.keep(id, now), lives), (cause) => Scope.close(lives, Exit.failCause(cause)))
      made++
      kept.set(place, lives)
    })

    const update = Effect.gen(function* () {
      const places = placesOf(announcing)
      for (const [place, lives] of kept) {
        if (places.some((other) => isSamePlace(other, place))) continue
        kept.delete(place)
        yield* Scope.close(lives, Exit.void)
      }
      for (const place of places) if (![...kept.keys()].some((other) => isSamePlace(other, place))) yield* keep(place)
    })
    yield* update
    return update
  })
