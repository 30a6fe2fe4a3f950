/** Sends the requests that came while earlier ones were under way together, so that a busy resource is asked less often. */
import { Cause, Effect, Exit, Queue } from "effect"

export interface Options<Request, Answer, E> {
  /** Sends requests and returns their answers in the same order. If it fails for several, each is sent by itself. */
  readonly send: (requests: ReadonlyArray<Request>) => Effect.Effect<ReadonlyArray<Answer>, E>
  /** Batches under way at once. */
  readonly lanes: number
  /** The most requests in a batch. */
  readonly count: number
  /** A larger request is sent by itself. */
  readonly isLarge: (request: Request) => boolean
}

interface Work<Request, Answer, E> {
  readonly request: Request
  readonly tell: (answer: Exit.Exit<Answer, E>) => void
  /** Whether nobody waits for the answer any more. */
  dropped: boolean
}

/**
 * Returns a function that sends one request. A request that is under way is not interrupted with its caller. The end of the scope interrupts
 * all callers.
 */
export const make = Effect.fnUntraced(function* <Request, Answer, E>({ send, lanes, count, isLarge }: Options<Request, Answer, E>) {
  const waiting = yield* Queue.unbounded<Work<Request, Answer, E>>()
  const unanswered = new Set<Work<Request, Answer, E>>()
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const { tell } of [...unanswered]) tell(Exit.interrupt())
    })
  )

  const answer = (works: ReadonlyArray<Work<Request, Answer, E>>): Effect.Effect<void> =>
    Effect.matchCauseEffect(send(works.map(({ request }) => request)), {
      onSuccess: (answers) =>
        Effect.sync(() => {
          for (const [i, { tell }] of works.entries()) tell(answerOf(answers[i]))
        }),
      onFailure: (cause) =>
        works.length > 1
          ? Effect.forEach(works, (work) => answer([work]), { discard: true })
          : Effect.sync(() => works[0]?.tell(Exit.failCause(cause)))
    })

  const lane = Effect.gen(function* () {
    const taken = (yield* Queue.takeBetween(waiting, 1, count)).filter(({ dropped }) => !dropped)
    const small = taken.filter(({ request }) => !isLarge(request))
    if (small.length > 0) yield* answer(small)
    for (const work of taken) if (isLarge(work.request)) yield* answer([work])
  })
  yield* Effect.forEach(Array.from({ length: lanes }), () => Effect.forkScoped(Effect.forever(lane)))

  return (request: Request): Effect.Effect<Answer, E> =>
    // In one step, so that an interruption finds either nothing or a work that it drops
    Effect.callback((resume) => {
      const tell = (answer: Exit.Exit<Answer, E>) => {
        unanswered.delete(work)
        resume(answer)
      }
      const work: Work<Request, Answer, E> = { request, tell, dropped: false }
      unanswered.add(work)
      Queue.offerUnsafe(waiting, work)
      return Effect.sync(() => {
        unanswered.delete(work)
        work.dropped = true
      })
    })
})

const answerOf = <A>(answer: A | undefined): Exit.Exit<A> =>
  answer === undefined ? Exit.failCause(Cause.die(new Error("No answer"))) : Exit.succeed(answer)
