/**
 * The scheduler of a simulation. Every fiber of every process runs here, one task at a time, and the seed picks the next one. When no task
 * is ready, virtual time passes to the next sleeper. There are no timers and no threads, so the seed decides everything.
 *
 * Effect's own test clock needs real time to detect that all fibers wait. This scheduler knows it when no task is ready.
 */
import { Context, Effect, type Fiber } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import * as VirtualTime from "./VirtualTime.ts"

interface WorldOptions {
  readonly random: SeededRandom
  /** Milliseconds since 1970. */
  readonly start: number
  /** Probability that the next task is any ready one instead of the oldest. */
  readonly disorder: number
  /** Steps after which a fiber yields to others. */
  readonly yieldEvery: number
}

interface Task {
  readonly process: Process
  readonly run: () => void
}

interface Sleeper {
  readonly at: number
  readonly process: Process
  readonly wake: () => void
  cancelled: boolean
}

export class World {
  /** Virtual time: milliseconds since 1970. */
  now: number
  /** The end of the last {@link skip}: nothing ran in the time before it. */
  skippedTo = 0
  /** Tasks run so far. */
  tasks = 0
  readonly trace: Array<string> = []
  /** Code of the workload that runs or waits now. */
  readonly userWork = new Set<VirtualTime.UserWork>()
  /** Steps that it has taken so far. */
  userSteps = 0
  /** What runs now: a task, or promises that settle by themselves. Undefined while the real world may act. */
  turn: "task" | "promises" | undefined
  /** The first fiber that the real world made ready: a real timer or device woke it. */
  wokenFromOutside: string | undefined
  /** The process of everything outside the hosts: callers, administrators, the network. */
  readonly outside: Process
  readonly #random: SeededRandom
  readonly #options: WorldOptions
  #ready: Array<Task> = []
  /** Sorted by wake time, the next one last. */
  readonly #sleepers: Array<Sleeper> = []

  constructor(options: WorldOptions) {
    this.#options = options
    this.#random = options.random
    this.now = options.start
    this.outside = this.process("world", Context.empty())
  }

  /** Creates a process with its own services. `skew`: milliseconds by which its clock is ahead. */
  process(name: string, services: Context.Context<never>, skew = 0): Process {
    return new Process(this, name, services, this.#options.yieldEvery, skew)
  }

  /** Adds a line to the trace. */
  note(who: string, what: string): void {
    this.trace.push(`${this.now - this.#options.start} ${who}: ${what}`)
  }

  /** Does what begins the simulation, as a task does. */
  begin<A>(run: () => A): A {
    this.turn = "task"
    const begun = run()
    this.turn = undefined
    return begun
  }

  /** Whether no task is ready now: the next one is a sleeper's. */
  get isIdle(): boolean {
    this.#wakeDue()
    return this.#ready.length === 0
  }

  /** Code of the workload that waits now, but not for simulated time. */
  waitingWork(): ReadonlyArray<VirtualTime.UserWork> {
    return [...this.userWork].filter((work) => {
      if (!work.isAlive()) this.userWork.delete(work)
      return work.isAlive() && work.sleeping === 0
    })
  }

  /** Runs the next task; lets time pass until there is one. False when no task is left and no fiber sleeps. */
  runNext(): boolean {
    this.#wakeDue()
    while (this.#ready.length === 0) {
      const next = this.#sleepers.at(-1)
      if (next === undefined) return false
      // Time does not pass for a sleeper that was cancelled or killed
      if (next.cancelled || !next.process.alive) this.#sleepers.pop()
      else this.now = Math.max(this.now, next.at)
      this.#wakeDue()
    }
    const task = this.#take()
    this.tasks++
    this.turn = "task"
    if (task.process.alive) task.process.perform(task.run)
    this.turn = undefined
    return true
  }

  /** Advances time while nothing runs, as when a machine is suspended: all that falls due meanwhile runs late. Milliseconds. */
  skip(millis: number): void {
    this.now += millis
    this.skippedTo = this.now
  }

  /** `work`: whose fiber it is, if it is the workload's. */
  schedule(process: Process, run: () => void, work?: VirtualTime.UserWork): void {
    if (this.turn === undefined) this.wokenFromOutside ??= work?.name ?? `a fiber of ${process.name}`
    this.#ready.push({ process, run })
  }

  sleep(process: Process, millis: number, wake: () => void): Sleeper {
    const sleeper: Sleeper = { at: Math.ceil(this.now + Math.max(0, millis)), process, wake, cancelled: false }
    const index = this.#sleepers.findIndex(({ at }) => at <= sleeper.at)
    this.#sleepers.splice(index < 0 ? this.#sleepers.length : index, 0, sleeper)
    return sleeper
  }

  #wakeDue(): void {
    for (let next = this.#sleepers.at(-1); next !== undefined && next.at <= this.now; next = this.#sleepers.at(-1)) {
      this.#sleepers.pop()
      if (!next.cancelled && next.process.alive) this.#ready.push({ process: next.process, run: next.wake })
    }
  }

  #take(): Task {
    const isAny = this.#random.chance(this.#options.disorder)
    const index = isAny ? this.#random.below(this.#ready.length) : 0
    const [task] = this.#ready.splice(index, 1)
    if (task === undefined) throw new Error("No task is ready")
    return task
  }
}

/** A group of fibers that live and die together: one host, or everything outside the hosts. */
export class Process {
  readonly name: string
  alive = true
  /** When the last pause ended: milliseconds since 1970. */
  resumedAt = 0
  /** When it ended: milliseconds since 1970. */
  diedAt: number | undefined
  /** Whether it was killed instead of stopping by itself. */
  crashed = false
  /** The services of every fiber: a clock and a scheduler of its own, and those that it was created with. */
  readonly context: Context.Context<never>
  readonly #world: World
  readonly #yieldEvery: number
  /** Milliseconds by which its clock is ahead of the world's. */
  #skew: number
  /** Tasks that wait for the end of a pause; undefined while there is none. */
  #parked: Array<() => void> | undefined
  readonly #exitListeners = new Set<() => void>()

  constructor(world: World, name: string, services: Context.Context<never>, yieldEvery: number, skew: number) {
    this.#world = world
    this.name = name
    this.#skew = skew
    this.#yieldEvery = yieldEvery
    this.context = Context.merge(services, this.timeOf())
  }

  /** The clock and the scheduler of its fibers; of `work`, if they are the workload's. */
  timeOf(work?: VirtualTime.UserWork): Context.Context<never> {
    const world = this.#world
    return VirtualTime.services(
      {
        now: () => world.now,
        wallClock: () => world.now + this.#skew,
        sleep: (millis, wake) => world.sleep(this, millis, wake),
        schedule: (task) => world.schedule(this, task, work),
        noteUserStep: () => {
          world.userSteps++
        },
        isRunning: () => world.turn === "task",
        yieldEvery: this.#yieldEvery
      },
      work
    )
  }

  perform(task: () => void): void {
    if (this.#parked === undefined) task()
    else this.#parked.push(task)
  }

  /** Steps its wall clock to this skew. Its monotonic clock and its timers are not affected. */
  setClock(skew: number): void {
    this.#skew = skew
  }

  /** Ends it at once: no fiber takes another step, and no finalizer runs. */
  kill(): void {
    this.alive = false
    this.diedAt ??= this.#world.now
    this.#parked = undefined
    for (const listener of [...this.#exitListeners]) listener()
  }

  /** Runs `listener` once it has ended, however it does. Returns what forgets the listener. */
  onExit(listener: () => void): () => void {
    this.#exitListeners.add(listener)
    return () => this.#exitListeners.delete(listener)
  }

  /** Suspends it, as a long garbage collection does. Milliseconds. */
  pause(millis: number): void {
    if (this.#parked !== undefined || !this.alive) return
    const parked: Array<() => void> = []
    this.#parked = parked
    this.#world.sleep(this.#world.outside, millis, () => {
      this.#parked = undefined
      this.resumedAt = this.#world.now
      for (const task of parked) this.#world.schedule(this, task)
    })
  }

  /** Starts a fiber of this process. */
  fork<A, E, R>(effect: Effect.Effect<A, E, R>, services: Context.Context<R>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(Context.merge(services, this.context))(effect)
  }

  /**
   * Runs an effect here for a fiber of another process, which gets the result. Interrupting the waiting fiber interrupts the effect. If this
   * process ends first, the result is `gone`, or never comes.
   */
  ask<A, E, R, G = never>(
    asking: Process,
    effect: Effect.Effect<A, E, R>,
    services: Context.Context<R>,
    gone?: Effect.Effect<never, G>
  ): Effect.Effect<A, E | G> {
    return Effect.callback((resume) => {
      let fiber: Fiber.Fiber<A, E> | undefined
      let isInterrupted = false
      const answer = (result: Effect.Effect<A, E | G>) => this.#world.schedule(asking, () => resume(result))
      const listener = () => {
        if (this.#exitListeners.delete(listener) && gone !== undefined) answer(gone)
      }
      if (!this.alive) return gone === undefined ? undefined : answer(gone)
      this.#exitListeners.add(listener)
      this.#world.schedule(this, () => {
        if (isInterrupted) return
        fiber = this.fork(effect, services)
        fiber.addObserver((exit) => {
          if (this.#exitListeners.delete(listener)) answer(exit)
        })
      })
      return Effect.sync(() => {
        isInterrupted = true
        this.#exitListeners.delete(listener)
        this.#world.schedule(this, () => fiber?.interruptUnsafe())
      })
    })
  }
}
