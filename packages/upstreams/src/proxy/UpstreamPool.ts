/**
 * The upstream proxies of one place. A member that fails is left out until it answers again, which is tried after a time that grows with each
 * failure. Whether a member is alive is known from its use and from connecting to it now and then.
 */
import { lookup } from "node:dns/promises"
import { isIP, type Socket } from "node:net"
import { Clock, Effect, type Scope } from "effect"
import { NotConnected } from "./Destinations.ts"
import * as UpstreamProxy from "./UpstreamProxy.ts"

/** Milliseconds. */
const FIRST_RETRY = 5_000
const LAST_RETRY = 5 * 60_000
const CHECKED_EVERY = 30_000
const DIAL_LIMIT = 5_000
/** So often in a row a member may leave a request unanswered, which can be the fault of the destinations. */
const UNANSWERED_LIMIT = 3

interface Member {
  readonly upstream: UpstreamProxy.UpstreamProxy
  /** What sessions are told. */
  readonly exit: string
  /** In a row. */
  failures: number
  unanswered: number
  /** Why it is left out; undefined while it is alive. */
  trouble: string | undefined
  /** When it is connected to by itself. */
  checkAt: number
  /** Whether its death is in the process's log. */
  isTold: boolean
}

/** A session that keeps its member. */
export interface Kept {
  readonly id: string
  readonly ip: string
}

export interface UpstreamPool {
  readonly country: string
  readonly region: string | null
  /** The addresses of the members that are known, which is the upstream's own where no other was given. */
  readonly exits: ReadonlyArray<string>
  /** How many members are alive. */
  readonly alive: () => number
  /**
   * Connects to an address that was checked, through the next member, or through the one that the session keeps. Rejects with `NotConnected`.
   */
  readonly connect: (address: string, port: number, kept?: Kept) => Promise<Socket>
}

/** The addresses of an upstream are the nearest to its exit that can be known without asking others. */
const exitOf = async ({ exit, url }: UpstreamProxy.UpstreamProxy): Promise<string> => {
  const { host } = UpstreamProxy.endpointOf(url)
  if (exit !== undefined || isIP(host) > 0) return exit ?? host
  return await lookup(host).then(
    ({ address }) => address,
    () => host
  )
}

/** Members that are left out, and when they come back. */
const health = (now: () => number) => {
  const failed = (member: Member, trouble: string): void => {
    member.trouble = trouble
    member.unanswered = 0
    member.checkAt = now() + Math.min(FIRST_RETRY * 2 ** member.failures++, LAST_RETRY)
  }
  return {
    failed,
    unanswered: (member: Member): void => {
      if (++member.unanswered >= UNANSWERED_LIMIT) failed(member, "it leaves requests unanswered")
    },
    answered: (member: Member): void => {
      member.unanswered = 0
    },
    check: async (member: Member): Promise<void> => {
      member.checkAt = now() + CHECKED_EVERY
      try {
        ;(await UpstreamProxy.dial(member.upstream, DIAL_LIMIT)).destroy()
        // Its failures stay counted: an upstream that refuses our credentials can be connected to
        member.trouble = undefined
      } catch (error) {
        failed(member, error instanceof Error ? error.message : String(error))
      }
    }
  }
}

type Health = ReturnType<typeof health>

const through = async ({ answered, failed, unanswered }: Health, member: Member, address: string, port: number, until: number) => {
  const left = () => Math.max(1, until - performance.now())
  try {
    const socket = await UpstreamProxy.dial(member.upstream, Math.min(DIAL_LIMIT, left()))
    const target = await UpstreamProxy.tunnel(member.upstream, socket, address, port, left())
    answered(member)
    member.failures = 0
    return target
  } catch (error) {
    if (error instanceof UpstreamProxy.UpstreamFailed) failed(member, error.message)
    else if (error instanceof UpstreamProxy.Unanswered) unanswered(member)
    else answered(member)
    throw error
  }
}

/** The member that a session keeps: one with the address that its caller was told of, always the same. */
const keptBy = ({ id, ip }: Kept, members: ReadonlyArray<Member>): ReadonlyArray<Member> => {
  const there = members.filter(({ exit }) => exit === ip)
  const [all, at] = [there.length === 0 ? members : there, Number.parseInt(id.slice(-2), 36)]
  return all.slice(at % all.length, (at % all.length) + 1)
}

const connector = (members: ReadonlyArray<Member>, state: Health, timeLimit: number): UpstreamPool["connect"] => {
  let turn = 0
  const inTurn = (): ReadonlyArray<Member> => {
    const alive = members.filter(({ trouble }) => trouble === undefined)
    const first = turn++ % Math.max(1, alive.length)
    return [...alive.slice(first), ...alive.slice(0, first)]
  }
  return async (address, port, kept) => {
    const until = performance.now() + timeLimit
    const able = kept === undefined ? inTurn() : keptBy(kept, members).filter(({ trouble }) => trouble === undefined)
    for (const member of able) {
      try {
        return await through(state, member, address, port, until)
      } catch (error) {
        if (!(error instanceof UpstreamProxy.UpstreamFailed)) throw error
        if (performance.now() >= until) throw new NotConnected("timeout")
      }
    }
    throw new NotConnected("noExit")
  }
}

const tell = Effect.fnUntraced(function* (members: ReadonlyArray<Member>) {
  for (const member of members) {
    const isDead = member.trouble !== undefined
    if (isDead === member.isTold) continue
    member.isTold = isDead
    const name = `The upstream proxy ${UpstreamProxy.shown(member.upstream)}`
    yield* isDead ? Effect.logWarning(`${name} is left out: ${member.trouble}`) : Effect.logInfo(`${name} answers again`)
  }
})

/** Whether two are of one place: of one pool. */
export const isSamePlace = (one: Place, other: Place): boolean =>
  one.country === other.country && (one.region ?? null) === (other.region ?? null)

export interface Place {
  readonly country: string
  readonly region?: string | null | undefined
}

const placeOf = ({ country, region }: UpstreamProxy.UpstreamProxy): string => JSON.stringify([country, region])

const poolsOf = (members: ReadonlyArray<Member>, state: Health, timeLimit: number): ReadonlyArray<UpstreamPool> =>
  [...Map.groupBy(members, ({ upstream }) => placeOf(upstream)).values()].flatMap((there): ReadonlyArray<UpstreamPool> => {
    const [first] = there
    if (first === undefined) return []
    const { country, region } = first.upstream
    return [
      {
        country,
        region: region ?? null,
        exits: [...new Set(there.map(({ exit }) => exit))],
        alive: () => there.filter(({ trouble }) => trouble === undefined).length,
        connect: connector(there, state, timeLimit)
      }
    ]
  })

/** The pools of a node, which may be replaced while it serves. */
export interface UpstreamPools {
  readonly current: () => ReadonlyArray<UpstreamPool>
  /**
   * Goes on with other upstreams. One that stays keeps its state and its exit. Tunnels through one that goes stay open. New ones are tried
   * once before this returns.
   */
  readonly replace: (upstreams: ReadonlyArray<UpstreamProxy.UpstreamProxy>) => Effect.Effect<void>
}

/** A pool for each place. Members are tried once before this returns, and watched until the scope closes. `timeLimit` in milliseconds. */
export const make = (
  upstreams: ReadonlyArray<UpstreamProxy.UpstreamProxy>,
  timeLimit: number
): Effect.Effect<UpstreamPools, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const state = health(now)
    let members: ReadonlyArray<Member> = []
    let pools: ReadonlyArray<UpstreamPool> = []

    const begun = (upstream: UpstreamProxy.UpstreamProxy) =>
      Effect.map(
        Effect.promise(() => exitOf(upstream)),
        (exit): Member => ({ upstream, exit, failures: 0, unanswered: 0, trouble: undefined, checkAt: now(), isTold: false })
      )
    const lookAt = (of: ReadonlyArray<Member>) => {
      const due = of.filter(({ checkAt }) => checkAt <= now())
      const checks = Effect.forEach(due, (member) => Effect.promise(() => state.check(member)), { concurrency: 16, discard: true })
      return Effect.andThen(checks, tell(of))
    }
    const replace = Effect.fnUntraced(function* (upstreams: ReadonlyArray<UpstreamProxy.UpstreamProxy>) {
      // Each member stays once: the same line may stand in the file twice
      const staying = new Map(Map.groupBy(members, ({ upstream }) => JSON.stringify(upstream)))
      const next = yield* Effect.forEach(
        upstreams,
        (upstream) => {
          const [same, ...others] = staying.get(JSON.stringify(upstream)) ?? []
          staying.set(JSON.stringify(upstream), others)
          return same === undefined ? begun(upstream) : Effect.succeed(same)
        },
        { concurrency: 16 }
      )
      yield* lookAt(next)
      members = next
      pools = poolsOf(members, state, timeLimit)
    })
    yield* replace(upstreams)
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.delay(
          Effect.suspend(() => lookAt(members)),
          "1 second"
        )
      )
    )
    return { current: () => pools, replace }
  })
