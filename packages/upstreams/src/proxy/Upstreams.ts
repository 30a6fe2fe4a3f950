/** The upstreams of a node: whether they fit it, and how it goes on when their source has others. */
import { type Duration, Effect } from "effect"
import { isSamePlace, type Place, type UpstreamPools } from "./UpstreamPool.ts"
import { faultOf, shown, type UpstreamProxy } from "./UpstreamProxy.ts"

/** Where upstreams are read from, again and again: such as a file. Its error names what is wrong with it, and no secret. */
export interface UpstreamSource {
  readonly read: Effect.Effect<ReadonlyArray<UpstreamProxy>, { readonly message: string }>
}

/** Why these are no upstreams of a node; undefined if they are. `own`: where it connects by itself, if it does. */
export const misfit = (upstreams: ReadonlyArray<UpstreamProxy>, own: Place | undefined): string | undefined => {
  if (own === undefined && upstreams.length === 0) return "neither a country nor upstreams were named"
  for (const upstream of upstreams) {
    const fault = faultOf(upstream.url)
    if (fault !== undefined) return `the upstream ${shown(upstream)} is ${fault}`
    if (own !== undefined && isSamePlace(upstream, own))
      return `the upstream ${shown(upstream)} is of the node's own place: leave out the node's country`
  }
  return undefined
}

export interface Followed {
  /** Why the upstreams that the source has now are not used; undefined while they are. */
  readonly trouble: () => string | undefined
  /** Looks at the source for ever. */
  readonly following: Effect.Effect<never>
}

/**
 * Reads the source again and again, and replaces the pools when it has other upstreams; `update` announces them then. What cannot be read
 * or does not fit changes nothing: it is logged once.
 */
export const follow = (
  { read }: UpstreamSource,
  first: ReadonlyArray<UpstreamProxy>,
  pools: UpstreamPools,
  options: {
    readonly own: Place | undefined
    readonly every: Duration.Input
    readonly update: Effect.Effect<void, { readonly message: string }>
  }
): Followed => {
  let current = JSON.stringify(first)
  let trouble: string | undefined
  let isAnnounced = true
  const apply = Effect.fnUntraced(function* (upstreams: ReadonlyArray<UpstreamProxy>) {
    const why = misfit(upstreams, options.own)
    if (why !== undefined) return yield* Effect.fail({ message: why })
    trouble = undefined
    const next = JSON.stringify(upstreams)
    if (next !== current) {
      yield* pools.replace(upstreams)
      current = next
      isAnnounced = false
    }
    if (isAnnounced) return
    yield* options.update
    isAnnounced = true
    yield* Effect.logInfo(`The proxy has other upstreams: ${upstreams.length}`)
  })
  const refuse = Effect.fnUntraced(function* ({ message }: { readonly message: string }) {
    if (trouble === message) return
    trouble = message
    yield* Effect.logWarning(`The upstreams of the proxy stay as they were: ${message}`)
  })
  const look = Effect.catch(Effect.flatMap(read, apply), refuse)
  return { trouble: () => trouble, following: Effect.forever(Effect.delay(look, options.every)) }
}
