/** What a workload expects of its operations, and what its expectations are shown. */
import { type AccountEvent, type Balance, balanceOf, type Job, type Operation } from "@millrace/core"
import { Cause, Effect, Exit, Result, Schema } from "effect"
import { type Records, Reservations } from "./Evidence.ts"
import { stateOf } from "./LogRecorder.ts"
import type { Call, CallError, Input } from "./Records.ts"
import type { World as Scheduler } from "./World.ts"

/** The host died of a bug while it ran the call, or gave the call up. */
export interface Died {
  readonly _tag: "Died"
  readonly message: string
}

/** What a caller was answered: the decoded data, or the error. `Disconnected`: its host went away before it answered. */
export type Reply<Data> =
  | {
      readonly _tag: "Success"
      readonly data: Data
      /** Thousandths of a credit; 0 for a replay, so that the charges of all replies add up to what was paid. A job is charged later. */
      readonly charged: number
      /** The answer of an earlier call under the same idempotency key. */
      readonly replayed: boolean
      /** The job that the call became. */
      readonly jobId: string | undefined
    }
  | { readonly _tag: "Failure"; readonly error: CallError | Died }

/** One call as its caller saw it. Times are milliseconds since 1970, simulated. */
export interface ObservedCall {
  readonly requestId: string
  readonly accountId: string
  /** The key of the operation. */
  readonly operation: string
  readonly input: unknown
  /** The idempotency key, if any. */
  readonly key: string | undefined
  /** The host that was asked, and how often it had been started before: `h0.2`. */
  readonly host: string
  readonly startedAt: number
  readonly hungUp: boolean
  /** Undefined while the caller waits, and when it hung up. */
  readonly answer: { readonly at: number; readonly reply: Reply<unknown> } | undefined
}

/** The truth about the simulated world, whatever hosts say: what expectations may look at. */
export interface ObservedWorld {
  /** Simulated time: milliseconds since 1970. */
  readonly now: number
  /** The accounts that callers call for. */
  readonly accounts: ReadonlyArray<string>
  /** Calls of the workload's operations so far, in the order in which they began. */
  readonly calls: ReadonlyArray<ObservedCall>
  /** The balance of an account by the events in the log, now. Thousandths of a credit. */
  readonly balance: (accountId: string) => Balance
  /** The events of an account, oldest first. `at`: when it was decided, milliseconds since 1970. */
  readonly events: (accountId: string) => ReadonlyArray<{ readonly event: AccountEvent; readonly at: number }>
  /** What a call was charged by the events in the log, and for how many units; undefined if it was not. Refunds are not deducted. */
  readonly charge: (requestId: string) => { readonly quantity: number; readonly charged: number } | undefined
  /** A job by its events in the log; undefined if there is none with this id. */
  readonly job: (jobId: string) => Job.Job | undefined
}

/** The world when a call has been answered. */
export interface CallWorld extends ObservedWorld {
  readonly call: ObservedCall
}

/**
 * What an expectation says. It holds if it returns nothing, `true`, or an Effect that succeeds with one of them. It is violated if it throws,
 * returns `false` or a sentence, or an Effect that fails. An Effect runs in simulated time.
 */
export type Verdict = void | boolean | string | Effect.Effect<unknown, unknown>

type DataOf<Op> = Op extends { readonly success: { readonly Type: infer Data } } ? Data : never

/**
 * The arguments of `after`: for each operation its key, its input and its reply. A test of the key narrows the others, in a function that
 * names all four.
 */
export type AfterArguments<Op extends Operation.Any> = Op extends Operation.Any
  ? [operation: Op["key"], input: Operation.InputOf<Op>, reply: Reply<DataOf<Op>>, world: CallWorld]
  : never

export interface Expectations<Op extends Operation.Any> {
  /**
   * Called once for each call of the workload's operations that was answered, at that moment: with data, fresh or replayed, with an error,
   * or `Disconnected` when the host went away. Also for the calls that the simulator makes once faults have ended. Not called for a caller
   * who hung up, as nobody got an answer.
   */
  readonly after?: (...call: AfterArguments<Op>) => Verdict
  /** Called once at the end: faults are over, recovery has completed, and all hosts have stopped. */
  readonly finally?: (world: ObservedWorld) => Verdict
}

/** The expectations of any workload, as the simulator calls them. */
export interface AnyExpectations {
  readonly after?: (operation: string, input: Input, reply: Reply<Input>, world: CallWorld) => Verdict
  readonly finally?: (world: ObservedWorld) => Verdict
}

/** What expectations are shown of a simulation. */
export interface Observable {
  readonly world: Scheduler
  readonly records: Records
  readonly accounts: ReadonlyArray<string>
  readonly operations: ReadonlyMap<string, Operation.Any>
}

export const observe = ({ accounts, operations, records, world }: Observable): ObservedWorld => ({
  now: world.now,
  accounts,
  get calls() {
    return records.calls.flatMap((call) => {
      const operation = operations.get(call.intent.operation)
      return operation === undefined ? [] : [observedCall(call, operation)]
    })
  },
  balance: (accountId) =>
    balanceOf(accountId, records.recorder.stateAt(accountId, records.recorder.states(accountId).length - 1), world.now),
  events: (accountId) => records.recorder.accountEvents.filter(({ stream }) => stream === `account-${accountId}`),
  charge: (requestId) => {
    const [success] = new Reservations(records.recorder.accountEvents).of(requestId).flatMap(({ success }) => success ?? [])
    return success && { quantity: success.quantity, charged: success.charged }
  },
  job: (jobId) => (records.recorder.jobs.has(jobId) ? stateOf(records.recorder.job(jobId)) : undefined)
})

const observedCall = ({ hungUp, intent, process, requestId, response, startedAt }: Call, operation: Operation.Any): ObservedCall => {
  const { accountId, input, key } = intent
  const answer = response && { at: response.at, reply: replyOf(response.answer, operation) }
  return { requestId, accountId, operation: operation.key, input, key, host: process.name, startedAt, hungUp, answer }
}

const replyOf = (answer: NonNullable<Call["response"]>["answer"], { success }: Operation.Any): Reply<unknown> => {
  if (Exit.isSuccess(answer)) {
    const { billed, data, job, replayed } = answer.value
    const decoded: unknown = Schema.decodeUnknownSync(Schema.toCodecJson(success))(JSON.parse(data))
    return { _tag: "Success", data: decoded, charged: replayed ? 0 : (billed?.charged ?? 0), replayed, jobId: job?.id }
  }
  const error = Cause.findErrorOption(answer.cause)
  if (error._tag === "Some") return { _tag: "Failure", error: error.value }
  return { _tag: "Failure", error: { _tag: "Died", message: String(Cause.squash(answer.cause)) } }
}

/** Judges an answered call. Reports at once what it finds at once; returns what remains to be run, if anything. */
export const judgeCall = (
  expectations: AnyExpectations | undefined,
  observable: Observable,
  call: Call,
  report: (violation: string) => void
): Effect.Effect<void> | undefined => {
  const { after } = expectations ?? {}
  const operation = observable.operations.get(call.intent.operation)
  if (after === undefined || operation === undefined) return undefined
  const reportCall = (violation: string) => report(`${call.requestId}: after ${operation.key}: ${violation}`)
  return judge(() => {
    const observed = observedCall(call, operation)
    if (observed.answer === undefined) return true
    return after(operation.key, call.intent.input, observed.answer.reply, Object.assign(observe(observable), { call: observed }))
  }, reportCall)
}

/** Judges the whole simulation. */
export const judgeEnd = (
  expectations: AnyExpectations | undefined,
  observable: Observable,
  report: (violation: string) => void
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { finally: atEnd } = expectations ?? {}
    if (atEnd === undefined) return Effect.void
    return (
      judge(
        () => atEnd(observe(observable)),
        (violation) => report(`finally: ${violation}`)
      ) ?? Effect.void
    )
  })

const judge = (expectation: () => unknown, report: (violation: string) => void): Effect.Effect<void> | undefined => {
  const returned = Result.try({ try: expectation, catch: (error) => error })
  if (Result.isFailure(returned)) return void report(textOf(returned.failure))
  const verdict = returned.success
  if (!Effect.isEffect(verdict)) return void reportVerdict(verdict, report)
  return Effect.matchCause(verdict as Effect.Effect<unknown, unknown>, {
    onFailure: (cause) => report(textOf(Cause.squash(cause))),
    onSuccess: (verdict) => reportVerdict(verdict, report)
  })
}

const reportVerdict = (verdict: unknown, report: (violation: string) => void): void => {
  if (typeof verdict === "string") report(verdict)
  else if (verdict === false) report("the expectation does not hold")
  else if (verdict instanceof Promise) report("the expectation returned a promise, which would settle in real time: return an Effect")
}

const COLOURS = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "gu")

/** The message of an error in one line, without colours. */
const textOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message || error.name : typeof error === "string" ? error : JSON.stringify(error)
  return text.replaceAll(COLOURS, "").replaceAll(/\s+/gu, " ").trim()
}
