/**
 * One execution of a call, as a chain of callbacks: each step begins when the step before it is told its result. On the way of success the
 * work has the only fiber. What happens to a call that fails, and what only some calls need, are effects, which run in fibers of their own.
 */
import { AsyncResource } from "node:async_hooks"
import type { Aggregate, Decide } from "@millrace/event-sourcing"
import { type Cause, type Context, Effect, Exit } from "effect"
import type { Account } from "../../ledger/Account.ts"
import type { AccountEvent } from "../../ledger/AccountEvent.ts"
import * as Decisions from "../../ledger/Decisions.ts"
import type { Committed } from "../../ledger/Ledger.ts"
import { fork, type Running, type Told } from "../../Running.ts"
import type { Any, AnyCall, AnyFile, AnyJob } from "../../work/Operation.ts"
import type { OperationError } from "../../work/OperationError.ts"
import { upstreamOf } from "../../work/Perform.ts"
import * as Accept from "./Accept.ts"
import * as Amends from "./Amends.ts"
import type { Call, Caller, ChargeError, Held, Key, Reply } from "./Call.ts"
import * as Free from "./Free.ts"
import * as Hold from "./Hold.ts"
import * as Quote from "./Quote.ts"
import * as Replay from "./Replay.ts"
import type { Services } from "./Services.ts"
import * as Settle from "./Settle.ts"
import { type Delivered, start as startWork } from "./Work.ts"

/** What is to be executed, and for whom. */
export interface Order<E extends OperationError, R> {
  readonly services: Services
  readonly operation: Any<E, R>
  readonly input: unknown
  readonly caller: Caller
  /** The services of the operation, and the references with which fibers begin. */
  readonly context: Context.Context<R>
  /** Counts the end of a call. What it returns is run before the end is told. */
  readonly ended: (
    operation: string,
    input: unknown,
    caller: Caller,
    exit: Exit.Exit<Reply, E | ChargeError>
  ) => Effect.Effect<void> | undefined
}

/** Executes a call. `told` gets its end, perhaps before this returns. An interrupted call ends as interrupted, once its hold has ended. */
export const start = <E extends OperationError, R>(order: Order<E, R>, told: Told<Reply, E | ChargeError>): Running => {
  const execution = new Execution(order, told)
  execution.begin()
  return execution
}

type Runnable<E extends OperationError, R> = AnyCall<E, R> | AnyFile<E, R>

const NOTHING = () => {}
const UNINTERRUPTIBLE = { uninterruptible: true } as const

/** Its steps resume in the asynchronous context in which it was made, as the steps of a fiber do. */
class Execution<E extends OperationError, R> extends AsyncResource implements Running {
  readonly #order: Order<E, R>
  readonly #told: Told<Reply, E | ChargeError>
  /** What runs now and can be interrupted. */
  #running: Running | undefined
  #isInterrupted = false
  #isOver = false
  /** Tells the circuit of the upstream that the call has ended. */
  #leave = NOTHING

  constructor(order: Order<E, R>, told: Told<Reply, E | ChargeError>) {
    super("millrace/Execution")
    this.#order = order
    this.#told = told
  }

  interrupt(): void {
    this.#isInterrupted = true
    this.#running?.interrupt()
  }

  begin(): void {
    this.#safely(this.#replay, undefined)
  }

  /** Looks up the idempotency key before any check, so that a finished call is replayed whatever has changed since. */
  #replay(): void {
    const { caller, input, operation, services } = this.#order
    if (caller.idempotency === undefined) return this.#admit(undefined)
    this.#await(Replay.keyOf(services, caller, caller.idempotency), (key) =>
      this.#await(Replay.find(services, { operation, input, ...caller }, key), (replayed) =>
        replayed === undefined ? this.#admit(key) : this.#end(Exit.succeed(replayed.reply))
      )
    )
  }

  /** Fails at once while the circuit of the operation's upstream is open. */
  #admit(key: Key | undefined): void {
    const { operation, services } = this.#order
    const admitted = operation.local === true ? NOTHING : services.breaker.admit(upstreamOf(operation.key))
    if (typeof admitted !== "function") return this.#end(Exit.fail(admitted))
    this.#leave = admitted
    this.#quote(key)
  }

  #quote(key: Key | undefined, isConfirmed = false): void {
    const { caller, context, input, operation, services } = this.#order
    this.#await(Quote.quote(services, operation, input, caller, key, context, isConfirmed), this.#quoted)
  }

  #quoted(call: Call<E, R>): void {
    const { operation } = this.#order
    if (operation._tag === "Job") this.#accept(call, operation)
    else if (call.cost === 0) this.#free(call, operation)
    else this.#hold(call, operation)
  }

  #accept(call: Call<E, R>, operation: AnyJob<E, R>): void {
    this.#await(Accept.call(this.#order.services, call, operation), (ended) =>
      "_tag" in ended ? this.#quote(call.key, true) : this.#end(Exit.succeed(ended))
    )
  }

  #free(call: Call<E, R>, operation: Runnable<E, R>): void {
    const { services } = this.#order
    if (Free.isClaimed(call)) return this.#endWith(Free.once(services, call, operation))
    this.#work(call, operation, (exit) =>
      Exit.isSuccess(exit) ? this.#endWith(Free.reply(services, call, exit.value)) : this.#fail(exit.cause)
    )
  }

  /** From here to the end of the hold, only the work can be interrupted. */
  #hold(call: Call<E, R>, operation: Runnable<E, R>): void {
    const { context, services } = this.#order
    const reserved = (exit: Exit.Exit<Committed, Hold.Refused>): void => {
      if (Exit.isSuccess(exit)) return this.#held({ _tag: "Held", call, hold: exit.value }, operation)
      this.#complete(Hold.notHeld(services, call, exit.cause), (exit) => {
        if (Exit.isFailure(exit)) this.#fail(exit.cause)
        else if (exit.value._tag === "Outdated") this.#quote(call.key, true)
        else if (exit.value._tag === "Replayed") this.#end(Exit.succeed(exit.value.reply))
        else this.#held(exit.value, operation)
      })
    }
    Hold.start(services, call, context, this.#resume(reserved))
  }

  #held(held: Held<E, R>, operation: Runnable<E, R>): void {
    const { services } = this.#order
    this.#work(held.call, operation, (exit) =>
      Exit.isSuccess(exit) ? this.#keep(held, exit.value) : this.#complete(Amends.failed(services, held.call, exit.cause), this.#end)
    )
  }

  #work(call: Call<E, R>, operation: Runnable<E, R>, next: Told<Delivered, E | ChargeError>): void {
    const { context, input, services } = this.#order
    if (this.#isInterrupted) return next(Exit.interrupt())
    this.#watch((told) => startWork(services, operation, input, call, context, told), next)
  }

  /** Keeps the reply of a call with a key. */
  #keep(held: Held<E, R>, done: Delivered): void {
    const { services } = this.#order
    if (held.call.key === undefined) return this.#settle(held, done)
    const kept = Effect.tapCause(Replay.keepOrYield(services, held, done), () => Amends.release(services, held.call, "service_error"))
    this.#complete(kept, (exit) => (Exit.isSuccess(exit) ? this.#settle(held, done) : this.#fail(exit.cause)))
  }

  #settle(held: Held<E, R>, done: Delivered): void {
    const { services } = this.#order
    this.#command(held.call, Decisions.settle(Settle.settleOf(held.call.reservationId, done)), (exit) =>
      Exit.isSuccess(exit)
        ? this.#end(Exit.succeed(Settle.replyOf(services, held.call, done, exit.value)))
        : this.#complete(Settle.notSettled(services, held, done, exit.cause), this.#end)
    )
  }

  #fail(cause: Cause.Cause<E | ChargeError>): void {
    this.#end(Exit.failCause(cause))
  }

  #end(exit: Exit.Exit<Reply, E | ChargeError>): void {
    this.#leave()
    const end = this.#isInterrupted ? Exit.interrupt() : exit
    const { caller, ended, input, operation } = this.#order
    const log = ended(operation.key, input, caller, end)
    // Not before: a defect in counting the end is the end, and is told
    this.#isOver = true
    if (log === undefined) this.#told(end)
    else this.#complete(log, () => this.#told(end))
  }

  // how steps are joined

  /** Goes on with the value of an effect that can be interrupted. */
  #await<A>(effect: Effect.Effect<A, E | ChargeError, R>, next: (value: A) => void): void {
    if (Exit.isExit(effect)) this.#goOn(effect as Exit.Exit<A, E | ChargeError>, next)
    else
      this.#watch<A>(
        (told) => fork(effect, this.#order.context, told),
        (exit) => this.#goOn(exit, next)
      )
  }

  #goOn<A>(exit: Exit.Exit<A, E | ChargeError>, next: (value: A) => void): void {
    if (Exit.isFailure(exit)) this.#fail(exit.cause)
    else if (this.#isInterrupted) this.#end(Exit.interrupt())
    else next.call(this, exit.value)
  }

  #endWith(effect: Effect.Effect<Reply, E | ChargeError, R>): void {
    this.#await(effect, (reply) => this.#end(Exit.succeed(reply)))
  }

  /** Goes on with the end of a command on the account, which cannot be interrupted. */
  #command<X>(
    { accountId, requestId }: Call<E, R>,
    decide: Decide<Account, AccountEvent, X>,
    next: Told<Committed, X | Aggregate.Failure>
  ): void {
    const { context, services } = this.#order
    services.ledger.submit(accountId, decide, { $correlationId: requestId }, context, this.#resume(next))
  }

  /** Goes on with a result in the asynchronous context of this call. */
  #resume<A, X>(next: Told<A, X>): Told<A, X> {
    return (exit) => this.runInAsyncScope(this.#safely, this, next, exit)
  }

  /** Goes on with the end of an effect that cannot be interrupted. */
  #complete<A, X>(effect: Effect.Effect<A, X, R>, next: Told<A, X>): void {
    fork(effect, this.#order.context, (exit) => this.#safely(next, exit), UNINTERRUPTIBLE)
  }

  /** Goes on with the end of what is started, which an interruption of the call interrupts. */
  #watch<A>(start: (told: Told<A, E | ChargeError>) => Running, next: Told<A, E | ChargeError>): void {
    let isTold = false
    const running = start((exit) => {
      isTold = true
      this.#running = undefined
      this.#safely(next, exit)
    })
    if (isTold) return
    this.#running = running
    // The caller may leave while it starts
    if (this.#isInterrupted) running.interrupt()
  }

  /** Whoever tells a result goes on undisturbed: a defect of a step ends the call, and one of the caller is logged. */
  #safely<A>(step: (result: A) => void, result: A): void {
    try {
      step.call(this, result)
    } catch (defect) {
      if (this.#isOver) fork(Effect.logError("The caller of a call failed at its end", defect), this.#order.context, NOTHING)
      else this.#end(Exit.die(defect))
    }
  }
}
