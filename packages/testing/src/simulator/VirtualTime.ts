/** The clock and the scheduler of the fibers of a simulated process. */
import { Clock, Context, Duration, Effect, Scheduler } from "effect"

/** Code of the workload while it runs or waits: what the simulator knows of how it waits. */
export interface UserWork {
  /** What runs, where, and for which call. */
  readonly name: string
  /** Whether its host has not ended. */
  readonly isAlive: () => boolean
  /** Sleeps of its fibers that have not ended. */
  sleeping: number
  /** When one of its fibers ran last: milliseconds since 1970. */
  ranAt: number
  /** How long none of them had run before that; 0 if one slept in simulated time. Milliseconds. */
  waited: number
}

/** What a process asks of its world. Times are milliseconds. */
export interface Source {
  /** World time, and the wall clock of the process. */
  readonly now: () => number
  readonly wallClock: () => number
  readonly sleep: (millis: number, wake: () => void) => { cancelled: boolean }
  readonly schedule: (task: () => void) => void
  /** Counts a step of the workload. */
  readonly noteUserStep: () => void
  /** Whether a task of the world runs now. */
  readonly isRunning: () => boolean
  /** Steps after which a fiber yields to others. */
  readonly yieldEvery: number
}

/** The services of every fiber of a process; of `work`, if the fibers are the workload's. */
export const services = (source: Source, work?: UserWork): Context.Context<never> =>
  Context.make(Clock.Clock, clock(source, work)).pipe(Context.add(Scheduler.Scheduler, scheduler(source, work)))

const clock = ({ now, sleep, wallClock }: Source, work: UserWork | undefined): Clock.Clock => {
  const nanos = () => BigInt(wallClock()) * 1_000_000n
  const monotonic = () => BigInt(now()) * 1_000_000n
  const slept = (by: number) => {
    if (work !== undefined) work.sleeping += by
  }
  return {
    currentTimeMillisUnsafe: wallClock,
    currentTimeMillis: Effect.sync(wallClock),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: monotonic,
    monotonicTimeNanos: Effect.sync(monotonic),
    sleep: (duration) =>
      Effect.callback((resume) => {
        const lasts = Duration.toMillis(duration)
        if (lasts === Number.POSITIVE_INFINITY) return
        slept(1)
        const sleeper = sleep(lasts, () => {
          if (sleeper.cancelled) return
          slept(-1)
          resume(Effect.void)
        })
        return Effect.sync(() => {
          sleeper.cancelled = true
          slept(-1)
        })
      })
  }
}

const scheduler = ({ isRunning, noteUserStep, now, schedule, yieldEvery }: Source, work: UserWork | undefined): Scheduler.Scheduler => {
  const dispatcher: Scheduler.SchedulerDispatcher = { scheduleTask: schedule, flush: () => {} }
  return {
    executionMode: "async",
    shouldYield: (fiber) => {
      if (work !== undefined) {
        noteUserStep()
        noteRun(work, now())
      }
      // A fiber that a promise or a device woke must wait for its turn, and never goes on in a process that has ended
      return fiber.currentOpCount >= yieldEvery || !isRunning()
    },
    makeDispatcher: () => dispatcher
  }
}

const noteRun = (work: UserWork, now: number): void => {
  if (now === work.ranAt) return
  work.waited = work.sleeping > 0 ? 0 : now - work.ranAt
  work.ranAt = now
}
