/** A host of the simulated world: all of Millrace in one process, which starts, is asked, stands still, stops in order, or dies. */
import { createHash } from "node:crypto"
import {
  BlobStore,
  Charge,
  Ids,
  type Ledger,
  MasterKey,
  Millrace,
  type Operation,
  type OperationError,
  type PricePlan,
  RandomBytes,
  type Registration,
  Vault
} from "@millrace/core"
import { type Aggregate, EventIds, EventStore, StateStore } from "@millrace/event-sourcing"
import { Cause, Context, Data, type Duration, Effect, Exit, Layer, Logger, Random, Scope, Stream } from "effect"
import type * as FaultyEventStore from "../FaultyEventStore.ts"
import type * as SeededRandom from "../SeededRandom.ts"
import * as Desk from "./Desk.ts"
import type { Faults } from "./Faults.ts"
import * as Network from "./Network.ts"
import { type Dressed, dress, type Input, undressed } from "./Upstream.ts"
import type { Climate } from "./Weather.ts"
import type { OfHost, Workload } from "./Workload.ts"
import type { Process, World } from "./World.ts"

/** The host went away before it answered. */
export class Disconnected extends Data.TaggedError("Disconnected")<{}> {}

/** Whatever a host fails with. */
export interface Failure {
  readonly _tag: string
}

/** What callers and administrators use of a host. */
export type Services = Charge.Charge | Ledger | PricePlan.PriceBook | Registration | OfHost

/** Files as jobs stored them: SHA-256 in hex, by their names in the store. */
export type Files = Map<string, string>

/** What all hosts have in common. */
export interface Site<Op extends Operation.Any> {
  readonly world: World
  readonly events: EventStore.EventStore["Service"]
  readonly states: StateStore.StateStore["Service"]
  readonly faults: Faults
  readonly workload: Workload<Op>
  readonly weather: Climate
  readonly random: SeededRandom.SeededRandom
  readonly accounts: Pick<Aggregate.Options<never>, "queueLimit" | "batchLimit" | "idleAfter">
  readonly jobs: Millrace.JobOptions
  readonly blobs: Network.Blobs
  readonly files: Files
  /** Writes so far of hosts that may crash by plan, at each stage. */
  readonly writes: Record<Network.Stage, number>
  /** Told of what a host logs as a warning or worse. */
  readonly complained: (host: string, message: string) => void
}

/** How recovery is set up: rarely enough that simulated hours cost little. */
export const RECOVERY = { ttl: "1 minute", poll: "10 seconds", sweepEvery: "30 seconds" } as const

const MASTER = new Uint8Array(32).fill(7)
/** How long a host may take to stop, seconds: longer than an attempt of 15 minutes that does not let itself be interrupted. */
const STOP = 1_200

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
  #cutUntil = 0
  #cut: ReturnType<typeof Network.faultyEvents>["cut"] | undefined
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

  /** Whether since then, in this life, the event store served it, and it was not kept from asking. */
  isServed(since: { readonly at: number; readonly faults: number }): boolean {
    const { faults, world } = this.#site
    const { resumedAt = 0 } = this.#process ?? {}
    return faults.appends === undefined && this.faults === since.faults && Math.max(this.#cutUntil, resumedAt, world.leptTo) < since.at
  }

  /** How often the event store failed it in this life. */
  get faults(): number {
    return (this.#faulty?.trace ?? []).filter(({ outcome }) => outcome !== "ok").length
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
    const { world, faults, random, workload, weather, accounts, complained, jobs, blobs, files } = this.#site
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
    const offered: ReadonlyArray<Operation.Any> = workload.offers.map(({ operation }) => operation)
    const desk = Desk.make(offered)
    const shelf = Network.shelf(line, blobs, faults, own.fork("blobs"), () => this.#calm)
    const base = Layer.provideMerge(desk.length === 0 ? noFiles : fileStore(shelf, files), stores)
    let operations: ReadonlyArray<Dressed> = []
    const layer = Layer.unwrap(
      Effect.map(Layer.build(workload.services), (services) => {
        operations = [...offered.map((operation) => dress(operation, services, { ...weather, process })), ...desk.map(undressed)]
        return Millrace.layer({ operations, late: faults.late, recovery: RECOVERY, accounts, jobs })
      })
    ).pipe(Layer.provideMerge(base))
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
      const gone = Effect.suspend(() => Effect.fail(new Disconnected()))
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

  /** Waits for a job as the call that made it may, and is answered as that would be then. */
  answer(
    operation: string,
    accountId: string,
    jobId: string,
    within: Duration.Input
  ): Effect.Effect<{ readonly data: string; readonly ended: boolean }, Failure> {
    const job = this.#life?.operations.find(({ key }) => key === operation)?.job
    if (job === undefined) return Effect.fail(new Disconnected())
    return this.request(job.answer(accountId, jobId, within))
  }

  /** A whole file: SHA-256 of its bytes in hex. */
  download(
    operation: string,
    accountId: string,
    jobId: string,
    requestId: string
  ): Effect.Effect<{ readonly tag: string; readonly hash: string }, Failure> {
    const file = this.#life?.operations.find(({ key }) => key === operation)?.download
    if (file === undefined) return Effect.fail(new Disconnected())
    return this.request(
      Effect.gen(function* () {
        const { read, tag } = yield* file({ job: jobId }, { accountId, requestId })
        const sha = createHash("sha256")
        yield* Stream.runForEach(yield* read(), (bytes) => Effect.sync(() => void sha.update(bytes)))
        return { tag, hash: sha.digest("hex") }
      })
    )
  }

  /** Its clock is set, forwards or back, by no more than clocks may be apart. */
  setClock(random: SeededRandom.SeededRandom): void {
    const { faults, world } = this.#site
    if (this.#life === undefined) return
    const skew = random.below(faults.skew + 1)
    world.say(this.#life.process.name, `has its clock ${skew} ms ahead`)
    this.#life.process.setClock(skew)
  }

  /** Ends it at once, in the middle of everything. */
  crash(why: string): void {
    const process = this.#process
    if (process === undefined || !process.alive) return
    this.#site.world.say(process.name, `crashes ${why}`)
    this.tellFaults()
    this.#life = undefined
    this.#fuse = undefined
    process.crashed = true
    process.kill()
  }

  /** It will crash at this stage of its so many-th write from now. */
  lightFuse(stage: Network.Stage, writes: number): void {
    this.#light(stage, writes, () => this.crash(`when a write is ${stage}`))
  }

  /** After so many writes from now it hears nothing certain of the event store for a while; `oneWay`: some of what it writes arrives. */
  cutOff(writes: number, millis: number, how: "whole" | "oneWay"): void {
    this.#light("arrived", writes, () => {
      const { world } = this.#site
      world.say(this.name, `has no event store for ${millis} ms`)
      this.#cutUntil = world.now + millis
      if (this.#cut !== undefined) world.outside.fork(this.#cut(millis, how), Context.empty())
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
    const { faults, world, writes } = this.#site
    if (!this.#calm && faults.crash?.stage === stage && ++writes[stage] === faults.crash.write) {
      this.crash(`by plan, when a write is ${stage}`)
      world.outside.fork(Effect.delay(this.start, 5_000), Context.empty())
      return
    }
    const fuse = this.#fuse
    if (fuse?.stage !== stage || process !== this.#process || fuse.writes-- > 0) return
    this.#fuse = undefined
    fuse.blows()
  }
}

/** A place for files whose own documents are those of all hosts, and a note of what was put there. */
const fileStore = (shelf: BlobStore.Shelf, files: Files) =>
  Layer.effect(
    BlobStore.BlobStore,
    Effect.map(BlobStore.make(shelf), (store) =>
      BlobStore.BlobStore.of({
        ...store,
        put: (subject, content, named) =>
          Effect.tap(store.put(subject, content, named), ({ id }) =>
            Effect.sync(() => {
              if (!Stream.isStream(content)) files.set(id, createHash("sha256").update(content).digest("hex"))
            })
          )
      })
    )
  ).pipe(Layer.provide(Vault.Vault.layer))

/** Where nothing is a job, nothing is stored. */
const noFiles = Layer.mock(BlobStore.BlobStore, {})

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
