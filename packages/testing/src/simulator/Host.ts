/** A host of the simulated world: all of Millrace in one process, which starts, is asked, stands still, stops in order, or dies. */
import { createHash } from "node:crypto"
import {
  Charge,
  Ids,
  type Ledger,
  MasterKey,
  Millrace,
  type Operation,
  type OperationError,
  type PricePlan,
  RandomBytes,
  type Registration
} from "@millrace/core"
import { type Aggregate, EventIds, EventStore, StateStore } from "@millrace/event-sourcing"
import { Cause, Context, Data, Effect, Exit, Layer, Logger, Random, Scope } from "effect"
import type * as FaultyEventStore from "../FaultyEventStore.ts"
import type * as SeededRandom from "../SeededRandom.ts"
import type { Faults } from "./Faults.ts"
import * as Network from "./Network.ts"
import { type Dressed, dress, type Input, type Weather } from "./Upstream.ts"
import type { Workload } from "./Workload.ts"
import type { Process, World } from "./World.ts"

/** The host went away before it answered. */
export class Disconnected extends Data.TaggedError("Disconnected")<{}> {}

/** What callers and administrators use of a host. */
export type Services = Charge.Charge | Ledger | PricePlan.PriceBook | Registration

/** What all hosts have in common. */
export interface Site<Op extends Operation.Any> {
  readonly world: World
  readonly events: EventStore.EventStore["Service"]
  readonly states: StateStore.StateStore["Service"]
  readonly faults: Faults
  readonly workload: Workload<Op>
  readonly weather: Weather
  readonly random: SeededRandom.SeededRandom
  readonly accounts: Pick<Aggregate.Options<never>, "queueLimit" | "batchLimit" | "idleAfter">
  /** Told of what a host logs as a warning or worse. */
  readonly complained: (host: string, message: string) => void
}

/** How recovery is set up: rarely enough that simulated hours cost little. */
export const RECOVERY = { ttl: "1 minute", poll: "10 seconds", sweepEvery: "30 seconds" } as const

const MASTER = new Uint8Array(32).fill(7)
/** How long a host may take to stop, seconds. */
const STOP = 300

interface Life {
  readonly process: Process
  readonly services: Context.Context<Services>
  readonly operations: ReadonlyArray<Dressed>
  readonly scope: Scope.Closeable
}

export class Host<Op extends Operation.Any> {
  readonly name: string
  #lives = 0
  readonly #site: Site<Op>
  #life: Life | undefined
  #starting = false
  #process: Process | undefined
  #calm = false
  #calming: Array<() => void> = []
  #fuse: { stage: Network.Stage; writes: number; blows: () => void } | undefined
  /** Traces of the event store's faults, already told. */
  #told = 0
  #cut: ((millis: number) => Effect.Effect<void>) | undefined
  #faulty: FaultyEventStore.FaultyEventStore | undefined

  constructor(name: string, site: Site<Op>) {
    this.name = name
    this.#site = site
  }

  get isUp(): boolean {
    return this.#life !== undefined
  }

  /** Whatever fails here now has ended with this process. */
  get process(): Process | undefined {
    return this.#life?.process
  }

  /** From now on its stores serve it without faults, in every life, and it does not crash by itself. */
  calm(): void {
    this.#calm = true
    this.#fuse = undefined
    for (const calm of this.#calming) calm()
  }

  /** Starts it, again and again until it stands, unless it does already. */
  readonly start: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#starting || this.isUp) return Effect.void
    this.#starting = true
    return Effect.ensuring(
      this.#starts,
      Effect.sync(() => {
        this.#starting = false
      })
    )
  })

  readonly #starts: Effect.Effect<void> = Effect.suspend(() => {
    const { world, faults, random, workload, weather, accounts, complained } = this.#site
    const name = `${this.name}.${this.#lives++}`
    const own = random.fork(name)
    const process = world.process(
      name,
      references(own, (message) => complained(name, message)),
      own.below(faults.skew + 1)
    )
    this.#process = process
    const line: Network.Line = { world, process, writes: (stage) => this.#burn(process, stage) }
    const { faulty, cut, calm } = Network.faultyEvents(this.#site.events, faults, own.fork("events"))
    this.#cut = cut
    const states = Network.faultyStates(this.#site.states, faults, own.fork("states"), (what) => world.say(name, what))
    this.#faulty = faulty
    this.#told = 0
    this.#calming = [calm, states.calm]
    if (this.#calm) this.calm()
    const stores = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, Network.events(line, faulty)),
      Layer.succeed(StateStore.StateStore, Network.states(line, states)),
      Layer.orDie(MasterKey.layer(MASTER))
    )
    let operations: ReadonlyArray<Dressed> = []
    const layer = Layer.unwrap(
      Effect.map(Layer.build(workload.services), (services) => {
        operations = workload.offers.map(({ operation }) => dress(operation, services, weather))
        return Millrace.layer({ operations, late: faults.late, recovery: RECOVERY, accounts })
      })
    ).pipe(Layer.provide(stores))
    const scope = Scope.makeUnsafe()
    const built = Layer.buildWithMemoMap(layer, Layer.makeMemoMapUnsafe(), scope)
    world.say(name, "starts")
    return Effect.exit(process.ask(world.outside, built, Context.empty(), Effect.fail(new Disconnected()))).pipe(
      Effect.flatMap((exit) => {
        if (Exit.isSuccess(exit) && process.alive) {
          world.say(name, "is up")
          this.#life = { process, services: exit.value, operations, scope }
          return Effect.void
        }
        world.say(name, `did not start: ${Exit.isSuccess(exit) ? "dead" : tagOf(exit.cause)}`)
        process.kill()
        return Effect.andThen(Effect.sleep(500), this.#starts)
      })
    )
  })

  /** Asks it something; `Disconnected` when it is down, or dies before it answers. */
  request<A, E>(effect: Effect.Effect<A, E, Services>): Effect.Effect<A, E | Disconnected> {
    return Effect.suspend((): Effect.Effect<A, E | Disconnected> => {
      const gone = Effect.fail(new Disconnected())
      if (this.#life === undefined) return gone
      const { process, services } = this.#life
      return process.ask(this.#site.world.outside, effect, services, gone)
    })
  }

  /** A billed call. `ended` is told when the host is done with it, whether or not anybody waits for that. */
  call(
    operation: string,
    input: Input,
    caller: Charge.Caller,
    ended: () => void
  ): Effect.Effect<Charge.Reply, Charge.ChargeError | OperationError | Disconnected> {
    const called = this.#life?.operations.find(({ key }) => key === operation)
    if (called === undefined) return Effect.fail(new Disconnected())
    const run = Effect.flatMap(Charge.Charge, (charge) => charge.run(called, input, caller))
    return this.request(Effect.onExit(run, () => Effect.sync(ended)))
  }

  /** Ends it at once, in the middle of everything. */
  crash(why: string): void {
    const process = this.#process
    if (process === undefined || !process.alive) return
    this.#site.world.say(process.name, `crashes ${why}`)
    this.tellFaults()
    this.#life = undefined
    this.#fuse = undefined
    process.kill()
  }

  /** It will crash at this stage of its so many-th write from now. */
  lightFuse(stage: Network.Stage, writes: number): void {
    this.#light(stage, writes, () => this.crash(`when a write is ${stage}`))
  }

  /** After so many writes from now it hears nothing certain of the event store for a while, whatever becomes of what it writes. */
  cutOff(writes: number, millis: number): void {
    this.#light("arrived", writes, () => {
      const { world } = this.#site
      world.say(this.name, `has no event store for ${millis} ms`)
      if (this.#cut !== undefined) world.outside.fork(this.#cut(millis), Context.empty())
    })
  }

  pause(millis: number): void {
    if (this.#life === undefined) return
    this.#site.world.say(this.#life.process.name, `stands still for ${millis} ms`)
    this.#life.process.pause(millis)
  }

  /** Ends it in order. False when it does not end. */
  readonly stop: Effect.Effect<boolean> = Effect.suspend(() => {
    if (this.#life === undefined) return Effect.succeed(true)
    const { process, scope } = this.#life
    const { world } = this.#site
    this.#life = undefined
    world.say(process.name, "stops")
    const closed = Effect.as(
      Effect.exit(process.ask(world.outside, Scope.close(scope, Exit.void), Context.empty(), Effect.interrupt)),
      true
    )
    // Second by second: one that the world sleeps through counts as one
    const tooLong = Effect.as(Effect.replicateEffect(Effect.sleep(1_000), STOP, { discard: true }), false)
    return Effect.tap(Effect.raceFirst(closed, tooLong), () => Effect.sync(() => process.kill()))
  })

  /** Puts what the event store did to it into the trace. */
  tellFaults(): void {
    const { world } = this.#site
    const trace = this.#faulty?.trace ?? []
    for (; this.#told < trace.length; this.#told++) {
      const entry = trace[this.#told]
      if (entry !== undefined && entry.outcome !== "ok") world.say(this.name, `${entry.call} ${entry.stream} ${entry.outcome}`)
    }
  }

  #light(stage: Network.Stage, writes: number, blows: () => void): void {
    if (!this.#calm) this.#fuse = { stage, writes, blows }
  }

  #burn(process: Process, stage: Network.Stage): void {
    this.tellFaults()
    const fuse = this.#fuse
    if (fuse?.stage !== stage || process !== this.#process || fuse.writes-- > 0) return
    this.#fuse = undefined
    fuse.blows()
  }
}

const tagOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : String(error)
}

/** All chance of a process, from the seed. */
const references = (random: SeededRandom.SeededRandom, complained: (message: string) => void): Context.Context<never> => {
  const { next } = random.fork("random")
  const bytes = random.fork("bytes")
  return Context.make(EventIds, random.fork("events ids").eventIds()).pipe(
    Context.add(Ids, ids(random.fork("ids"))),
    Context.add(RandomBytes, (size: number) => bytes.bytes(size)),
    Context.add(Random.Random, { nextDoubleUnsafe: next, nextIntUnsafe: () => Math.floor((next() - 0.5) * Number.MAX_SAFE_INTEGER) }),
    Context.add(
      Logger.CurrentLoggers,
      new Set([
        Logger.make(({ logLevel, message, cause }) => {
          if (logLevel === "Warn" || logLevel === "Error" || logLevel === "Fatal") complained(`${describe(message)} ${describe(cause)}`)
        })
      ])
    )
  )
}

const describe = (said: unknown): string =>
  Cause.isCause(said)
    ? said.reasons.map((reason) => (reason._tag === "Interrupt" ? "interrupted" : tagOf(Cause.fromReasons([reason])))).join(", ")
    : Array.isArray(said)
      ? said.map(describe).join(" ")
      : typeof said === "string"
        ? said
        : typeof said === "object" && said !== null && "_tag" in said
          ? String(said._tag)
          : String(said)

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

/** Ids that repeat with the seed: ULIDs, greater from one to the next, and UUIDs. */
export const ids = (random: SeededRandom.SeededRandom): Ids => {
  const tail = Array.from({ length: 10 }, () => DIGITS[random.below(32)]).join("")
  let at = 0
  let count = 0
  return {
    ulid: (now) => {
      at = Math.max(at, now)
      return base32(at, 10) + base32(++count, 6) + tail
    },
    uuid: () => {
      const hex = createHash("sha256").update(`${tail}${++count}`).digest("hex")
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
    }
  }
}

const base32 = (value: number, digits: number): string => {
  let text = ""
  for (let left = value; text.length < digits; left = Math.floor(left / 32)) text = (DIGITS[left % 32] ?? "0") + text
  return text
}
