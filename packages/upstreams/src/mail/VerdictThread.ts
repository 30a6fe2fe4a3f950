/** The worker thread that judges messages, seen from its host: it has many checks at once, and is ended by one that it cannot finish. */
import { type Authentication, UpstreamUnavailable } from "@millrace/core"
import { Deferred, type Duration, Effect, Exit, FiberSet, RcRef } from "effect"
import * as WorkerThread from "../shared/WorkerThread.ts"
import type { DnsOutcome, FromThread, Received, ToThread } from "./VerdictMessages.ts"

export interface Options {
  /** Asks name servers. */
  readonly resolve: (domain: string, type: string) => Effect.Effect<DnsOutcome>
  /** The most memory of the thread for objects, in MiB. */
  readonly memory: number
  /** A thread that is idle for this long is ended. */
  readonly idleLimit: Duration.Input
}

/** The worker's file has the extension of this one: `.ts` in the repository, `.js` in a published package. */
const SCRIPT = new URL(import.meta.url.endsWith(".ts") ? "./VerdictWorker.ts" : "./VerdictWorker.js", import.meta.url)

const UPSTREAM = "mail verdicts"

interface Check {
  readonly verdicts: Deferred.Deferred<Authentication>
  readonly answer: (question: number, domain: string, type: string) => void
}

/** A thread with its checks under way. */
interface Judge extends WorkerThread.Thread {
  readonly checks: Map<number, Check>
}

const post = ({ worker }: Judge, message: ToThread): void => worker.postMessage(message)

const open = Effect.fnUntraced(function* (memory: number) {
  const thread = yield* WorkerThread.started({
    script: SCRIPT,
    upstream: UPSTREAM,
    resourceLimits: { maxOldGenerationSizeMb: memory, maxYoungGenerationSizeMb: 32 }
  })
  const checks = new Map<number, Check>()
  thread.worker.on("message", (message: FromThread) => {
    const check = checks.get(message.id)
    if ("verdicts" in message) check && Deferred.doneUnsafe(check.verdicts, Effect.succeed(message.verdicts))
    else check?.answer(message.question, message.domain, message.type)
  })
  // Whoever listens to a thread keeps the process alive for it
  thread.worker.unref()
  return { ...thread, checks } satisfies Judge
})

const failed = (reason: string) => new UpstreamUnavailable({ upstream: UPSTREAM, reason, isolated: true })

/** A check under way. The thread keeps its process alive only while it has some. */
const begin = ({ checks, worker }: Judge, id: number, check: Check): void => {
  if (checks.size === 0) worker.ref()
  checks.set(id, check)
}

const end = ({ checks, worker }: Judge, id: number): void => {
  checks.delete(id)
  if (checks.size === 0) worker.unref()
}

/**
 * Returns a function that judges a message. `UpstreamUnavailable` if the thread does not start, or ends meanwhile. A check that is
 * interrupted while it waits for name servers is given up; otherwise it blocks the thread, which is ended with the checks of others.
 */
export const make = Effect.fnUntraced(function* ({ idleLimit, memory, resolve }: Options) {
  const threads = yield* RcRef.make({ acquire: open(memory), idleTimeToLive: idleLimit })
  let begun = 0

  const living = Effect.gen(function* () {
    const thread = yield* RcRef.get(threads)
    if (!(yield* Deferred.isDone(thread.ended))) return thread
    yield* RcRef.invalidate(threads)
    return yield* RcRef.get(threads)
  })

  const judge = Effect.fnUntraced(function* (message: Received) {
    const thread = yield* living
    const fork = yield* FiberSet.makeRuntime<never>()
    const verdicts = Deferred.makeUnsafe<Authentication>()
    const id = ++begun
    let open = 0
    const answer = (question: number, domain: string, type: string) => {
      open++
      const answered = Effect.map(resolve(domain, type), (outcome) => {
        open--
        post(thread, { id, question, outcome })
      })
      fork(answered)
    }
    const verdict = Effect.suspend(() => {
      post(thread, { id, message })
      return Effect.raceFirst(Deferred.await(verdicts), Effect.mapError(Deferred.await(thread.ended), failed))
    })
    return yield* Effect.acquireUseRelease(
      Effect.sync(() => begin(thread, id, { verdicts, answer })),
      () => verdict,
      (_, exit) =>
        Effect.sync(() => {
          end(thread, id)
          if (Exit.isSuccess(exit)) return
          if (open > 0) post(thread, { id, isOver: true })
          else void thread.worker.terminate()
        })
    )
  })
  return (message: Received): Effect.Effect<Authentication, UpstreamUnavailable> => Effect.scoped(judge(message))
})
