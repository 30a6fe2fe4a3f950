/** A host of the simulated world. It starts, answers calls, is paused or cut off from its stores, stops in order, or crashes. */
import { createHash } from "node:crypto"
import { Charge, type Operation } from "@millrace/core"
import { Context, type Duration, Effect, Exit, Scope, Stream } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { WriteStage } from "./Faults.ts"
import type { Outage } from "./FaultyStores.ts"
import { type Deployment, type Prepared, prepare, type Running, type Services } from "./HostProcess.ts"
import { type CallError, Disconnected, type Input } from "./Records.ts"
import * as SeededServices from "./SeededServices.ts"
import type { Process } from "./World.ts"

/** Any error of a host. */
export interface Failure {
  readonly _tag: string
}

/** A file as a caller downloaded it. `hash`: the SHA-256 of its bytes in hex. */
export interface Download {
  readonly tag: string
  readonly hash: string
}

/** How long a host may take to stop, seconds: longer than an attempt of 15 minutes that cannot be interrupted. */
const STOP_WITHIN = 1_200

/** Something that happens to a host after so many more writes of this stage. */
interface Trigger {
  readonly stage: WriteStage
  writes: number
  readonly fire: () => void
}

export class Host {
  readonly name: string
  readonly #deployment: Deployment
  /** How often it was started. */
  #starts = 0
  #isStarting = false
  #running: Running | undefined
  /** The process and the stores of the newest start. */
  #process: Process | undefined
  #stores: Pick<Prepared, "events" | "states"> | undefined
  /** Entries of the event store's trace that the world's trace has already. */
  #noted = 0
  #isCalm = false
  #trigger: Trigger | undefined
  /** The end of the newest outage: milliseconds since 1970. */
  #cutUntil = 0

  constructor(name: string, deployment: Deployment) {
    this.name = name
    this.#deployment = deployment
  }

  get isUp(): boolean {
    return this.#running !== undefined
  }

  /** The process that answers calls now. */
  get process(): Process | undefined {
    return this.#running?.process
  }

  /** Faults of its event store since it started. */
  get faults(): number {
    return (this.#stores?.events.store.trace ?? []).filter(({ outcome }) => outcome !== "ok").length
  }

  /** Whether it has run and reached its event store without a fault since then. `faults`: {@link faults} at that time. */
  isUndisturbedSince({ at, faults }: { readonly at: number; readonly faults: number }): boolean {
    const { faults: plan, world } = this.#deployment
    const { resumedAt = 0 } = this.#process ?? {}
    return plan.appends === undefined && this.faults === faults && Math.max(this.#cutUntil, resumedAt, world.skippedTo) < at
  }

  /** Ends all faults of its stores, and planned crashes, in this life and every later one. */
  calm(): void {
    this.#isCalm = true
    this.#trigger = undefined
    this.#stores?.events.calm()
    this.#stores?.states.calm()
  }

  /** Starts it, and tries again until it is up. Does nothing if it is up already. */
  readonly start: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#isStarting || this.isUp) return Effect.void
    this.#isStarting = true
    const end = Effect.sync(() => {
      this.#isStarting = false
    })
    return Effect.ensuring(this.#startUntilUp, end)
  })

  readonly #startUntilUp: Effect.Effect<void> = Effect.suspend(() => {
    const { faults, random, onWarning, world } = this.#deployment
    const name = `${this.name}.${this.#starts++}`
    const own = random.fork(name)
    const services = SeededServices.make(own, (message) => onWarning(name, message))
    const process = world.process(name, services, own.below(faults.skew + 1))
    const onWrite = (stage: WriteStage) => this.#wrote(process, stage)
    const { start, ...stores } = prepare(this.#deployment, { world, process, onWrite }, own, () => this.#isCalm)
    this.#process = process
    this.#stores = stores
    this.#noted = 0
    if (this.#isCalm) this.calm()
    world.note(name, "starts")
    return Effect.exit(start).pipe(
      Effect.flatMap((exit) => {
        if (Exit.isSuccess(exit) && process.alive) {
          world.note(name, "is up")
          this.#running = exit.value
          return Effect.void
        }
        world.note(name, `did not start: ${Exit.isSuccess(exit) ? "dead" : SeededServices.errorOf(exit.cause)}`)
        process.kill()
        return Effect.andThen(Effect.sleep(500), this.#startUntilUp)
      })
    )
  })

  /** Runs an effect with its services. Fails with `Disconnected` if it is down, or dies before it answers. */
  request<A, E>(effect: Effect.Effect<A, E, Services>): Effect.Effect<A, E | Disconnected> {
    return Effect.suspend((): Effect.Effect<A, E | Disconnected> => {
      const disconnected = Effect.suspend(() => Effect.fail(new Disconnected()))
      if (this.#running === undefined) return disconnected
      const { process, services } = this.#running
      return process.ask(this.#deployment.world.outside, effect, services, disconnected)
    })
  }

  /** Makes a billed call. `onEnd` runs when the host has finished it, whether or not the caller still waits. */
  call(key: string, input: Input, caller: Charge.Caller, onEnd: () => void): Effect.Effect<Charge.Reply, CallError> {
    const operation = this.#operation(key)
    if (operation === undefined) return Effect.fail(new Disconnected())
    const run = Effect.flatMap(Charge.Charge, (charge) => charge.run(operation, input, caller))
    return this.request(Effect.onExit(run, () => Effect.sync(onEnd)))
  }

  /** Waits for the end of a job as the call that created it may. Returns whether the job has ended. */
  wait(key: string, accountId: string, jobId: string, within: Duration.Input): Effect.Effect<boolean, Failure> {
    const job = this.#operation(key)
    if (job?._tag !== "Job") return Effect.fail(new Disconnected())
    const reply = { requestId: "", data: "", replayed: false, job: { id: jobId } }
    const waited = Effect.flatMap(Charge.Charge, (charge) => charge.awaitJob(job, accountId, reply, within))
    return this.request(Effect.map(waited, ({ ended }) => ended))
  }

  /** Downloads a job's file. */
  download(key: string, accountId: string, jobId: string): Effect.Effect<Download, Failure> {
    const file = this.#operation(key)
    if (file?._tag !== "File") return Effect.fail(new Disconnected())
    const caller = { accountId, requestId: "download", reservationId: "download" }
    return this.request(
      Effect.gen(function* () {
        const download: Operation.Download = yield* file.open({ job: jobId }, caller)
        const sha = createHash("sha256")
        yield* Stream.runForEach(yield* download.read(), (bytes) => Effect.sync(() => void sha.update(bytes)))
        return { tag: download.tag, hash: sha.digest("hex") }
      })
    )
  }

  /** Steps its clock, forwards or back, within the skew of the fault model. */
  stepClock(random: SeededRandom): void {
    const { faults, world } = this.#deployment
    if (this.#running === undefined) return
    const skew = random.below(faults.skew + 1)
    world.note(this.#running.process.name, `steps its clock to ${skew} ms ahead`)
    this.#running.process.setClock(skew)
  }

  /** Kills it at once. */
  crash(why: string): void {
    const process = this.#process
    if (process === undefined || !process.alive) return
    this.#deployment.world.note(process.name, `crashes ${why}`)
    this.#noteFaults()
    this.#running = undefined
    this.#trigger = undefined
    process.crashed = true
    process.kill()
  }

  /** Crashes it at this stage of a write, after so many others. */
  crashAtWrite(stage: WriteStage, writes: number): void {
    this.#arm({ stage, writes, fire: () => this.crash(`when a write is ${stage}`) })
  }

  /** Cuts it off from its event store for a while, after so many writes. */
  cutOffAfterWrites(writes: number, millis: number, outage: Outage): void {
    this.#arm({ stage: "arrived", writes, fire: () => this.#cutOff(millis, outage) })
  }

  pause(millis: number): void {
    if (this.#running === undefined) return
    this.#deployment.world.note(this.#running.process.name, `is paused for ${millis} ms`)
    this.#running.process.pause(millis)
  }

  /** Stops it in order. False if it does not stop in time. */
  readonly stop: Effect.Effect<boolean> = Effect.suspend(() => {
    if (this.#running === undefined) return Effect.succeed(true)
    const { process, scope } = this.#running
    const { world } = this.#deployment
    this.#running = undefined
    world.note(process.name, "stops")
    const close = process.ask(world.outside, Scope.close(scope, Exit.void), Context.empty(), Effect.interrupt)
    const closed = Effect.as(Effect.exit(close), true)
    // Second by second, so that skipped time counts as one second
    const tooLong = Effect.as(Effect.replicateEffect(Effect.sleep(1_000), STOP_WITHIN, { discard: true }), false)
    return Effect.tap(Effect.raceFirst(closed, tooLong), () => Effect.sync(() => process.kill()))
  })

  #operation(key: string) {
    return this.#running?.operations.find((operation) => operation.key === key)
  }

  /** Adds the new faults of its event store to the trace. */
  #noteFaults(): void {
    const { world } = this.#deployment
    const trace = this.#stores?.events.store.trace ?? []
    for (const { call, outcome, stream } of trace.slice(this.#noted))
      if (outcome !== "ok") world.note(this.name, `${call} ${stream} ${outcome}`)
    this.#noted = trace.length
  }

  #cutOff(millis: number, outage: Outage): void {
    const { world } = this.#deployment
    world.note(this.name, `has no event store for ${millis} ms`)
    this.#cutUntil = world.now + millis
    if (this.#stores !== undefined) world.outside.fork(this.#stores.events.cut(millis, outage), Context.empty())
  }

  #arm(trigger: Trigger): void {
    if (!this.#isCalm) this.#trigger = trigger
  }

  #wrote(process: Process, stage: WriteStage): void {
    this.#noteFaults()
    const { faults, world, writes } = this.#deployment
    const { crash, outage } = faults
    if (!this.#isCalm && outage !== undefined && stage === "sent" && ++writes.outage === outage.write)
      this.#cutOff(outage.millis, "unconfirmed")
    if (!this.#isCalm && crash?.stage === stage && ++writes.crash === crash.write) {
      this.crash(`by plan, when a write is ${stage}`)
      world.outside.fork(Effect.delay(this.start, 5_000), Context.empty())
      return
    }
    const trigger = this.#trigger
    if (trigger?.stage !== stage || process !== this.#process || trigger.writes-- > 0) return
    this.#trigger = undefined
    trigger.fire()
  }
}
