/**
 * A worker thread that answers one message at a time. The first message starts it, the end of the scope ends it, and a failure replaces it.
 * For engines that block, cannot be interrupted, or may crash their thread.
 *
 * The script posts one message of any content when it is ready, then exactly one reply to each message that it receives.
 */
import { type ResourceLimits, Worker } from "node:worker_threads"
import { UpstreamUnavailable } from "@millrace/core"
import { Deferred, type Duration, Effect, Exit, RcRef, Schema } from "effect"

export interface StartOptions {
  /** Names the engine in errors. */
  readonly upstream: string
  readonly script: URL
  /** The time limit of a thread's start: 20 seconds by default. */
  readonly startLimit?: Duration.Input
  /** A message that needs more memory ends the thread. Those of Node by default. */
  readonly resourceLimits?: ResourceLimits
  /** Of the process by default, which may hold keys. A thread that runs the code of others needs none. */
  readonly environment?: "none"
}

export interface Options<Reply> extends StartOptions {
  readonly reply: Schema.Decoder<Reply>
  /** The time limit of a message, without the start of the thread. */
  readonly timeLimit: Duration.Input
  /** A thread that is unused for this long is ended to free its memory. */
  readonly idleLimit: Duration.Input
}

export interface Thread {
  readonly worker: Worker
  /** Fails with the reason once the thread has ended. */
  readonly ended: Deferred.Deferred<never, string>
}

export const make = <Message, Reply>(options: Options<Reply>) =>
  Effect.gen(function* () {
    const { upstream, timeLimit, idleLimit } = options
    const broken = (reason: string) => new UpstreamUnavailable({ upstream, reason })
    const failed = (reason: string) => new UpstreamUnavailable({ upstream, reason, isolated: true })
    const decode = Schema.decodeUnknownEffect(options.reply)

    const threads = yield* RcRef.make({ acquire: started(options), idleTimeToLive: idleLimit })

    const living = Effect.gen(function* () {
      const thread = yield* RcRef.get(threads)
      if (!(yield* Deferred.isDone(thread.ended))) return thread
      yield* RcRef.invalidate(threads)
      return yield* RcRef.get(threads)
    })

    const replyOf = (thread: Thread, message: Message) =>
      within(
        nextMessage(thread, () => thread.worker.postMessage(message)),
        timeLimit,
        "the worker thread exceeded its time limit"
      ).pipe(
        Effect.mapError(failed),
        Effect.flatMap((reply) => Effect.mapError(decode(reply), () => broken("the worker thread's reply has an unknown shape")))
      )

    return {
      /** Starts the thread, unless it runs. */
      start: Effect.scoped(Effect.asVoid(living)),
      /**
       * Sends a message as a structured clone and returns the reply. Must not be called again before that. `UpstreamUnavailable` if the
       * thread does not start; isolated if the message crashed the thread or exceeded the time limit. An unanswered or interrupted message
       * ends the thread, because its work cannot be stopped otherwise. The next message gets a new thread.
       */
      ask: (message: Message) =>
        Effect.flatMap(living, (thread) => replyOf(thread, message)).pipe(
          Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : RcRef.invalidate(threads))),
          Effect.scoped
        )
    }
  })

/** Starts a thread, which is ready then and ends with the scope. */
export const started = ({ upstream, startLimit = "20 seconds", ...thread }: StartOptions) =>
  open(thread).pipe(
    Effect.tap((thread) =>
      within(
        nextMessage(thread, () => undefined),
        startLimit,
        "the worker thread did not start within its time limit"
      )
    ),
    Effect.mapError((reason) => new UpstreamUnavailable({ upstream, reason }))
  )

const open = Effect.fnUntraced(function* ({ environment, resourceLimits = {}, script }: Omit<StartOptions, "upstream" | "startLimit">) {
  const ended = yield* Deferred.make<never, string>()
  const end = (reason: string) => Deferred.doneUnsafe(ended, Effect.fail(reason))
  const worker = yield* Effect.acquireRelease(
    Effect.try({
      // What an engine prints may quote a caller's text, so it reaches no log. Reading it would keep the process alive.
      try: () => new Worker(script, { stdout: true, stderr: true, resourceLimits, ...(environment === "none" && { env: {} }) }),
      catch: (cause) => `the worker thread did not start: ${cause}`
    }),
    (worker) => Effect.promise(() => worker.terminate())
  )
  worker.on("error", (cause) => end(`the worker thread failed: ${cause instanceof Error ? cause.message : "not an error"}`))
  worker.on("messageerror", () => end("a reply of the worker thread could not be read"))
  worker.on("exit", (code) => end(`the worker thread ended with code ${code}`))
  return { worker, ended }
})

/** The thread's next message, or the reason why it ended. The thread keeps its process alive only while a reply is pending. */
const nextMessage = ({ worker, ended }: Thread, ask: () => void): Effect.Effect<unknown, string> =>
  Effect.callback<unknown>((resume) => {
    const listener = (message: unknown) => resume(Effect.succeed(message))
    worker.once("message", listener)
    worker.ref()
    ask()
    return Effect.sync(() => worker.off("message", listener))
  }).pipe(Effect.ensuring(Effect.sync(() => worker.unref())), Effect.raceFirst(Deferred.await(ended)))

const within = <A>(effect: Effect.Effect<A, string>, duration: Duration.Input, reason: string): Effect.Effect<A, string> =>
  Effect.timeoutOrElse(effect, { duration, orElse: () => Effect.fail(reason) })
