/**
 * One host leads an account: with several hosts on one store, a call that arrives at another host is forwarded to the leader, so that the
 * hosts do not compete for the account's stream. This is about speed alone. Appends at exact revisions decide what is charged, so two
 * leaders at once, or none, cost time and nothing else. A call that cannot be forwarded runs where it is.
 *
 * A call is forwarded once at most: the host that receives it runs it. If the link breaks after the call was sent, the call is never run
 * again. Its caller gets `OutcomeUnknown`, and a call without an idempotency key is made free.
 */
import type { StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Option, Schema, type Scope, Tracer } from "effect"
import { CallsInDoubt } from "../billing/CallsInDoubt.ts"
import { Charge } from "../billing/Charge.ts"
import { newRunnerId } from "../Ids.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as TraceContext from "../observability/TraceContext.ts"
import { MasterKey } from "../vault/MasterKey.ts"
import type { Any, Services } from "../work/Operation.ts"
import * as Address from "./Address.ts"
import * as Codec from "./Codec.ts"
import * as Forwarding from "./Forwarding.ts"
import { type HostStatus, Hosts } from "./Hosts.ts"
import * as Members from "./Members.ts"
import { Reception, type Run } from "./Reception.ts"
import { type Secret, secretOf } from "./Tls.ts"

export interface LeadingOptions {
  /** Where the other hosts reach this one. */
  readonly address: Address.Address
  /** Where this host listens, if not there, as in a container. With port 0 on any that is free, which is then the port of `address`. */
  readonly listen?: Address.Address
}

/** The address cannot be listened on. */
export class ClusterUnavailable extends Schema.TaggedError<ClusterUnavailable>()("ClusterUnavailable", {
  address: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `This host cannot listen for the other hosts on ${this.address}: ${this.reason}`
  }
}

export class Leading extends Context.Service<
  Leading,
  {
    /** This host first, then the others that it sees. */
    readonly hosts: () => ReadonlyArray<HostStatus>
    /** Whether this host runs the calls of the account itself. */
    readonly leads: (accountId: string) => boolean
  }
>()("@millrace/core/leading/Leading") {
  /** Puts itself before `Charge`. The hosts of a cluster have the same operations, with the same providers. */
  static readonly layer = <Op extends Any>(
    operations: ReadonlyArray<Op>,
    options: LeadingOptions
  ): Layer.Layer<Leading | Charge, ClusterUnavailable, Charge | CallsInDoubt | MasterKey | StateStore.StateStore | Services<Op>> =>
    Layer.effectContext(make(operations, options))
}

type Forwardables = ReadonlyMap<string, Codec.Forwardable>

/** For how long a host that stops lets forwarded calls end before it interrupts them, and then how long their ends may take. */
const GRACE = "30 seconds"
const LAST_ENDS = "5 seconds"

const make = Effect.fnUntraced(function* <Op extends Any>(operations: ReadonlyArray<Op>, { address, listen = address }: LeadingOptions) {
  const here = yield* Charge
  const secret = secretOf(yield* MasterKey)
  const forwardables: Forwardables = new Map(
    operations.flatMap((operation) => {
      const known = Codec.forwardable(operation)
      return known === undefined ? [] : [[operation.key, known]]
    })
  )
  const { port } = yield* receive(secret, yield* running(here, forwardables), listen)
  const self = { id: yield* newRunnerId, address: address.port === 0 ? { ...address, port } : address }
  const hosts = yield* Effect.acquireRelease(
    Effect.sync(() => new Hosts(self, secret)),
    (hosts) => Effect.sync(() => hosts.close())
  )
  const log = logger(hosts)
  yield* Effect.forkScoped(
    Members.follow(self, (others) =>
      Effect.andThen(
        Effect.sync(() => hosts.see(others)),
        log
      )
    )
  )
  yield* Metrics.shardsLed(() => hosts.status()[0]?.shards ?? 0)
  yield* Metrics.hostsInSight(() => hosts.status().filter(({ state }) => state === "open").length)

  const needs = { callsInDoubt: yield* CallsInDoubt, scope: yield* Effect.scope, count: yield* Metrics.countForwarded }
  const leading = { hosts: () => hosts.status(), leads: (accountId: string) => hosts.leaderOf(accountId) === undefined }
  return Context.make(Leading, leading).pipe(Context.add(Charge, forwarding(needs, here, hosts, forwardables)))
})

/** Logs the hosts in sight whenever they have changed. */
const logger = (hosts: Hosts): Effect.Effect<void> => {
  let logged = ""
  return Effect.suspend(() => {
    const [self, ...others] = hosts.status()
    const seen = others.map(({ address, state }) => `${address} ${state}`).toSorted()
    if (logged === seen.join()) return Effect.void
    logged = seen.join()
    return Effect.logInfo("The hosts of the cluster have changed", { shards: self?.shards, others: seen })
  })
}

/** `Charge`, with calls that run at the leader of their account. */
const forwarding = (needs: Forwarding.Needs, here: Charge["Service"], hosts: Hosts, forwardables: Forwardables): Charge["Service"] => ({
  ...here,
  run: (operation, input, caller) =>
    Effect.suspend(() => {
      const call = here.run(operation, input, caller)
      const link = hosts.leaderOf(caller.accountId)
      const known = forwardables.get(operation.key)
      if (link === undefined || known === undefined) return call
      // The leader runs the same operation, so it fails with no other errors
      return Forwarding.forward(needs, link, known, input, caller, call) as typeof call
    }),
  start: (operation, input, caller, context, told) =>
    hosts.leaderOf(caller.accountId) === undefined || !forwardables.has(operation.key)
      ? here.start(operation, input, caller, context, told)
      : undefined
})

/** Runs the calls that other hosts forward. */
const running = <Op extends Any>(here: Charge["Service"], forwardables: Forwardables) =>
  Effect.map(Effect.context<Services<Op>>(), (context): Run => {
    const start = Effect.runForkWith(context)
    return ({ caller, input, operation, trace }, told) => {
      const known = forwardables.get(operation)
      const decoded = known?.decode(input)
      if (known === undefined || decoded === undefined || Option.isNone(decoded)) return undefined
      const call = here.run(known.operation, decoded.value, caller)
      const span = TraceContext.fromHeaders(trace)
      const fiber = start(span === undefined ? call : Effect.provideService(call, Tracer.ParentSpan, span))
      fiber.addObserver((exit) => told(Codec.endedOf(exit)))
      return () => fiber.interruptUnsafe()
    }
  })

/** Accepts links until the scope closes. Then the calls under way end first. Returns the address, with the port that is listened on. */
const receive = (secret: Secret, run: Run, address: Address.Address): Effect.Effect<Address.Address, ClusterUnavailable, Scope.Scope> => {
  const leave = (reception: Reception) => {
    const idle = Effect.promise(() => reception.leave())
    const interrupted = Effect.andThen(
      Effect.sync(() => reception.interrupt()),
      Effect.timeoutOption(idle, LAST_ENDS)
    )
    return Effect.timeoutOrElse(Effect.asVoid(idle), { duration: GRACE, orElse: () => Effect.asVoid(interrupted) }).pipe(
      Effect.andThen(Effect.sync(() => reception.close()))
    )
  }
  return Effect.flatMap(
    Effect.acquireRelease(
      Effect.sync(() => new Reception(secret, run)),
      leave
    ),
    (reception) =>
      Effect.tryPromise({
        try: () => reception.listen(address),
        catch: (error) =>
          new ClusterUnavailable({ address: Address.format(address), reason: error instanceof Error ? error.message : String(error) })
      })
  )
}
