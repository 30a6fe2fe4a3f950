/**
 * One host leads an account: with several hosts on one store, a call that arrives at another host is forwarded to the leader, so that the
 * hosts do not compete for the account's stream. This is about speed alone. Appends at exact revisions decide what is charged, so two
 * leaders at once, or none, cost time and nothing else. A call that cannot be forwarded runs where it is.
 *
 * A call is forwarded once at most: the host that receives it runs it. If the link breaks after the call was sent, the call is never run
 * again. Its caller gets `OutcomeUnknown`, and a call without an idempotency key is made free.
 */
import type { StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import type { CallsInDoubt } from "../billing/CallsInDoubt.ts"
import { Charge } from "../billing/Charge.ts"
import { newRunnerId } from "../Ids.ts"
import * as Metrics from "../observability/Metrics.ts"
import { MasterKey } from "../vault/MasterKey.ts"
import type { Any, Services } from "../work/Operation.ts"
import * as Address from "./Address.ts"
import { type HostStatus, Hosts } from "./Hosts.ts"
import * as LedCharge from "./LedCharge.ts"
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

/** For how long a host that stops lets forwarded calls end before it interrupts them, and then how long their ends may take. */
const GRACE = "30 seconds"
const LAST_ENDS = "5 seconds"

const make = Effect.fnUntraced(function* <Op extends Any>(operations: ReadonlyArray<Op>, { address, listen = address }: LeadingOptions) {
  const secret = secretOf(yield* MasterKey)
  const charge = yield* LedCharge.make(operations)
  const { port } = yield* receive(secret, charge.run, listen)
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

  const leading = { hosts: () => hosts.status(), leads: (accountId: string) => hosts.leaderOf(accountId) === undefined }
  return Context.make(Leading, leading).pipe(Context.add(Charge, charge.over(hosts)))
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
