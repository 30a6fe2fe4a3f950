/**
 * Time and order of a simulated world. Every fiber of every process runs here, one task at a time, and the seed says which is next;
 * when none is ready, time passes to the next sleeper. No timer, no thread, nothing that the seed does not decide.
 *
 * Effect's own test clock waits for real time to see whether a fiber has come to rest. Here that is known: nothing is ready.
 */
import { Clock, Context, Duration, Effect, type Fiber, Scheduler } from "effect"
import type * as SeededRandom from "../SeededRandom.ts"

export interface WorldOptions {
  readonly random: SeededRandom.SeededRandom
  /** Milliseconds since 1970. */
  readonly start: number
  /** Probability that the next task is any that is ready, not the oldest. */
  readonly disorder: number
  /** Steps of a fiber after which it makes room for others. */
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
  gone: boolean
}

export class World {
  /** Milliseconds since 1970. */
  now: number
  /** When nobody lived through the time before: the end of the last leap. */
  leptTo = 0
  /** Tasks run so far. */
  turns = 0
  readonly trace: Array<string> = []
  readonly #random: SeededRandom.SeededRandom
  readonly #options: WorldOptions
  #ready: Array<Task> = []
  /** The next one last. */
  readonly #sleepers: Array<Sleeper> = []
  /** The world outside of all hosts: callers, administrators, the network. */
  readonly outside: Process

  constructor(options: WorldOptions) {
    this.#options = options
    this.#random = options.random
    this.now = options.start
    this.outside = this.process("world", Context.empty())
  }

  /** A process of its own with its own services, its clock ahead of the world's by `skew` milliseconds. */
  process(name: string, services: Context.Context<never>, skew = 0): Process {
    return new Process(this, name, services, this.#options.yieldEvery, skew)
  }

  say(who: string, what: string): void {
    this.trace.push(`${this.now - this.#options.start} ${who}: ${what}`)
  }

  /** Runs a task, or lets time pass until there is one. False when nothing will ever happen again. */
  turn(): boolean {
    this.#wakeDue()
    while (this.#ready.length === 0) {
      const next = this.#sleepers.at(-1)
      if (next === undefined) return false
      // Whoever does not wait any more moves no clock
      if (next.gone || !next.process.alive) this.#sleepers.pop()
      else this.now = Math.max(this.now, next.at)
      this.#wakeDue()
    }
    const task = this.#take()
    this.turns++
    if (task.process.alive) task.process.perform(task.run)
    return true
  }

  /** Time that nobody lives through, as when a machine sleeps: whatever falls into it is late at once. */
  leap(millis: number): void {
    this.now += millis
    this.leptTo = this.now
  }

  schedule(process: Process, run: () => void): void {
    this.#ready.push({ process, run })
  }

  sleep(process: Process, millis: number, wake: () => void): Sleeper {
    const sleeper: Sleeper = { at: Math.ceil(this.now + Math.max(0, millis)), process, wake, gone: false }
    let low = 0
    let high = this.#sleepers.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#sleepers[middle]?.at ?? 0) > sleeper.at) low = middle + 1
      else high = middle
    }
    this.#sleepers.splice(low, 0, sleeper)
    return sleeper
  }

  #wakeDue(): void {
    for (let next = this.#sleepers.at(-1); next !== undefined && next.at <= this.now; next = this.#sleepers.at(-1)) {
      this.#sleepers.pop()
      if (!next.gone && next.process.alive) this.schedule(next.process, next.wake)
    }
  }

  #take(): Task {
    const any = this.#random.chance(this.#options.disorder)
    const place = any ? this.#random.below(this.#ready.length) : 0
    const [task] = this.#ready.splice(place, 1)
    if (task === undefined) throw new Error("Nothing is ready")
    return task
  }
}

/** What lives and dies together: the fibers of one host, or the world outside. */
export class Process {
  readonly name: string
  alive = true
  /** When it went on after it had stood still last. */
  resumedAt = 0
  /** Whether it was killed, and did not end by itself. */
  crashed = false
  /** Its own time: Effect's services, for every fiber of it. */
  readonly context: Context.Context<never>
  readonly #world: World
  /** How far its clock is ahead of the world's, milliseconds. */
  #skew: number
  /** What would run if it were not paused. */
  #parked: Array<() => void> | undefined

  readonly #mourners = new Set<() => void>()

  constructor(world: World, name: string, services: Context.Context<never>, yieldEvery: number, skew: number) {
    this.#world = world
    this.name = name
    this.#skew = skew
    const millis = () => world.now + this.#skew
    const nanos = () => BigInt(millis()) * 1_000_000n
    const monotonic = () => BigInt(world.now) * 1_000_000n
    const clock: Clock.Clock = {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: monotonic,
      monotonicTimeNanos: Effect.sync(monotonic),
      sleep: (duration) =>
        Effect.callback((resume) => {
          const lasts = Duration.toMillis(duration)
          if (lasts === Number.POSITIVE_INFINITY) return
          const sleeper = world.sleep(this, lasts, () => {
            if (!sleeper.gone) resume(Effect.void)
          })
          return Effect.sync(() => {
            sleeper.gone = true
          })
        })
    }
    const dispatcher: Scheduler.SchedulerDispatcher = { scheduleTask: (task) => world.schedule(this, task), flush: () => {} }
    const scheduler: Scheduler.Scheduler = {
      executionMode: "async",
      shouldYield: (fiber) => fiber.currentOpCount >= yieldEvery,
      makeDispatcher: () => dispatcher
    }
    this.context = services.pipe(Context.add(Clock.Clock, clock), Context.add(Scheduler.Scheduler, scheduler))
  }

  perform(task: () => void): void {
    if (this.#parked === undefined) task()
    else this.#parked.push(task)
  }

  /** Its clock is set, forwards or back; what measures by a monotonic one is not moved. */
  setClock(skew: number): void {
    this.#skew = skew
  }

  /** Ends it in the middle of whatever it does: no fiber of it takes another step, no finalizer runs. */
  kill(): void {
    this.alive = false
    this.#parked = undefined
    for (const mourn of [...this.#mourners]) mourn()
  }

  /** It stands still for so long, and knows nothing of it. Milliseconds. */
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

  /** Begins an effect as one of its fibers. */
  fork<A, E, R>(effect: Effect.Effect<A, E, R>, services: Context.Context<R>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(Context.merge(services, this.context))(effect)
  }

  /**
   * Asks this process from another: the effect runs here, its answer is heard there. Whoever is interrupted while waiting hangs up,
   * which interrupts it here; when this process ends first, the answer is `gone`, or none.
   */
  ask<A, E, R, G = never>(
    asking: Process,
    effect: Effect.Effect<A, E, R>,
    services: Context.Context<R>,
    gone?: Effect.Effect<never, G>
  ): Effect.Effect<A, E | G> {
    return Effect.callback((resume) => {
      let fiber: Fiber.Fiber<A, E> | undefined
      let hungUp = false
      const tell = (answer: Effect.Effect<A, E | G>) => this.#world.schedule(asking, () => resume(answer))
      const mourn = () => {
        if (this.#mourners.delete(mourn) && gone !== undefined) tell(gone)
      }
      if (!this.alive) return gone === undefined ? undefined : tell(gone)
      this.#mourners.add(mourn)
      this.#world.schedule(this, () => {
        if (hungUp) return
        fiber = this.fork(effect, services)
        fiber.addObserver((exit) => {
          if (this.#mourners.delete(mourn)) tell(exit)
        })
      })
      return Effect.sync(() => {
        hungUp = true
        this.#mourners.delete(mourn)
        this.#world.schedule(this, () => fiber?.interruptUnsafe())
      })
    })
  }
}
