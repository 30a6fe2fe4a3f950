/**
 * A worker thread that answers one message at a time: started by the first message, ended with the scope, and replaced whenever it
 * does anything but answer. Meant for engines that block, cannot be interrupted, or may take their thread down with them.
 *
 * The script receives each message on its `parentPort` and posts exactly one reply to it.
 */
import { Worker } from "node:worker_threads"
import { UpstreamUnavailable } from "@millrace/core"
import { Deferred, type Duration, Effect, Exit, RcRef, Schema, type Scope, Semaphore } from "effect"

export interface WorkerThread<Message, Reply> {
  /**
   * Fails when the thread died, hung past the time limit, or has too many messages waiting. A message that was not answered, also
   * one whose fiber was interrupted, ends the thread: nothing else stops what it is doing. Those waiting go to the next thread.
   */
  readonly ask: (message: Message) => Effect.Effect<Reply, UpstreamUnavailable>
}

interface Thread {
  readonly worker: Worker
  /** Fails once the thread has ended, for whatever reason. */
  readonly ended: Deferred.Deferred<never, UpstreamUnavailable>
}

/** Messages are structured clones. `queueLimit` counts the messages waiting or being answered; `timeLimit` covers a thread's start. */
export const make = <Message, Reply>(options: {
  readonly upstream: string
  readonly script: URL
  readonly reply: Schema.Decoder<Reply>
  readonly queueLimit: number
  readonly timeLimit: Duration.Input
  /** A thread unused for so long is ended, and its memory given back. */
  readonly idleLimit: Duration.Input
}): Effect.Effect<WorkerThread<Message, Reply>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const unavailable = (reason: string) => new UpstreamUnavailable({ upstream: options.upstream, reason })
    const decode = Schema.decodeUnknownEffect(options.reply)
    const oneAtATime = yield* Semaphore.make(1)
    let queued = 0

    const start = Effect.gen(function* () {
      const ended = yield* Deferred.make<never, UpstreamUnavailable>()
      const end = (reason: string) => Deferred.doneUnsafe(ended, Effect.fail(unavailable(reason)))
      const worker = yield* Effect.acquireRelease(
        Effect.try({
          // What an engine prints may quote a caller's text, so it reaches no log. Reading it would keep the process alive.
          try: () => new Worker(options.script, { stdout: true, stderr: true }),
          catch: (cause) => unavailable(`the worker thread did not start: ${cause}`)
        }),
        (worker) => Effect.promise(() => worker.terminate())
      )
      worker.on("error", (cause) => end(`the worker thread failed: ${cause instanceof Error ? cause.message : "not an error"}`))
      worker.on("messageerror", () => end("a reply of the worker thread could not be read"))
      worker.on("exit", (code) => end(`the worker thread ended with code ${code}`))
      worker.unref()
      return { worker, ended }
    })

    const threads = yield* RcRef.make({ acquire: start, idleTimeToLive: options.idleLimit })

    const living = Effect.gen(function* () {
      const thread = yield* RcRef.get(threads)
      if (!(yield* Deferred.isDone(thread.ended))) return thread
      yield* RcRef.invalidate(threads)
      return yield* RcRef.get(threads)
    })

    /** Only while it owes a reply does a thread keep its process alive. */
    const replyOf = ({ worker, ended }: Thread, message: Message) =>
      Effect.callback<unknown>((resume) => {
        const listener = (reply: unknown) => resume(Effect.succeed(reply))
        worker.once("message", listener)
        worker.ref()
        worker.postMessage(message)
        return Effect.sync(() => worker.off("message", listener))
      }).pipe(
        Effect.ensuring(Effect.sync(() => worker.unref())),
        Effect.raceFirst(Deferred.await(ended)),
        Effect.flatMap((reply) => Effect.mapError(decode(reply), () => unavailable("the worker thread's reply has an unknown shape")))
      )

    const exchange = (message: Message) =>
      Effect.flatMap(living, (thread) => replyOf(thread, message)).pipe(
        Effect.timeoutOrElse({
          duration: options.timeLimit,
          orElse: () => Effect.fail(unavailable("the worker thread exceeded its time limit"))
        }),
        Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : RcRef.invalidate(threads))),
        Effect.scoped
      )

    const enter = Effect.suspend(() => {
      if (queued >= options.queueLimit) return Effect.fail(unavailable(`${queued} messages are waiting already`))
      queued += 1
      return Effect.void
    })
    const leave = Effect.sync(() => {
      queued -= 1
    })

    return {
      ask: (message) =>
        Effect.acquireUseRelease(
          enter,
          () => oneAtATime.withPermit(exchange(message)),
          () => leave
        )
    }
  })
