/**
 * The direct way of a plain call: from the head of its request to its answer, without a fiber of the request. It declines whatever is
 * special or refused before anything is counted or written; then the route of the operation answers (`OperationRoute`). What both ways
 * decide is decided in one place: `ServedOperation`, `OperationAnswer`, `Access` and `RequestReport`.
 */
import { Charge, Money } from "@millrace/core"
import { Cause, type Context, Effect, Exit, Option, Result } from "effect"
import * as Access from "./Access.ts"
import * as Answer from "./Answer.ts"
import type { Exchange } from "./Exchange.ts"
import * as OperationAnswer from "./OperationAnswer.ts"
import type { Input } from "./OperationInput.ts"
import { answerOf, type Failure, problemOf } from "./Problem.ts"
import { methodOf } from "./RequestMetrics.ts"
import * as RequestReport from "./RequestReport.ts"
import * as ServedOperation from "./ServedOperation.ts"

/** A request without a body, as a server has it. */
export interface PlainRequest extends RequestReport.Head {
  /** The client's address, if the server knows it. */
  readonly address: () => string | undefined
}

/** A request, and what its path and query contain. */
export interface Found extends Pick<ServedOperation.Sent, "params" | "query"> {
  readonly request: PlainRequest
}

/** The server that a call belongs to. */
export interface Server {
  /** The services of the routes, and so of their operations. */
  readonly context: Context.Context<never>
  /** Whether it is about to end. */
  readonly isClosing: () => boolean
}

/** A call under way. It always ends by its callback. */
export interface DirectCall {
  /** Ends it because the server ends. */
  readonly interruptUnsafe: () => void
  /** Ends it because its client disconnected. Its hold is released, and it has no answer. */
  readonly abandon: () => void
}

/** Begins a call, or returns undefined if it is not plain. `ended`: called once, with the answer unless the client has disconnected. */
export type DirectRoute = (found: Found, server: Server, ended: (answer: Answer.Answer | undefined) => void) => DirectCall | undefined

/** The headers of calls that are not plain. */
const SPECIAL = ["idempotency-key", "prefer", "traceparent", "expect", "transfer-encoding"] as const

const isPlain = ({ headers }: RequestReport.Head): boolean =>
  SPECIAL.every((name) => headers[name] === undefined) && Number(headers["content-length"] ?? 0) === 0

interface Dependencies {
  readonly charge: Charge.Charge["Service"]
  readonly access: Access.Access
  readonly report: RequestReport.RequestReport
  readonly money: Money.Money
}

/** Returns the function that makes the direct route of an operation; undefined if its calls are never plain. */
export const make = Effect.gen(function* () {
  const dependencies: Dependencies = {
    charge: yield* Charge.Charge,
    access: yield* Access.make,
    report: yield* RequestReport.make,
    money: yield* Money.Current
  }
  return (served: ServedOperation.ServedOperation): DirectRoute | undefined => {
    const { _tag, route } = served.operation
    if (_tag !== "Call" || route.method !== "GET") return undefined
    return (found, server, ended) => {
      const admitted = isPlain(found.request) ? unlessBug(() => admit(dependencies, served, found)) : undefined
      return admitted && begin(dependencies, served, found, admitted, server, ended)
    }
  }
})

/** A bug, such as one in an operation's schema, declines: the other way meets it again, and reports it. */
const unlessBug = <A>(evaluate: () => A): A | undefined => {
  try {
    return evaluate()
  } catch {
    return undefined
  }
}

/** A call that will run. */
interface Admitted {
  readonly exchange: Exchange
  readonly input: Input
  /** Undefined where the operation needs no key. */
  readonly caller: Charge.Caller | undefined
}

/** Who calls, with what, within the rate. Counts the call, unless it declines. */
const admit = ({ access, report }: Dependencies, served: ServedOperation.ServedOperation, found: Found): Admitted | undefined => {
  const { request } = found
  const { scope } = served
  const caller = scope === undefined ? undefined : access.authenticateNow(request)
  if (scope !== undefined && caller?.scopes.includes(scope) !== true) return undefined
  const read = ServedOperation.inputOf(served, found, undefined)
  if (Result.isFailure(read)) return undefined
  const rate = access.admitNow(caller, request.address)
  if (Result.isFailure(rate)) return undefined
  const { headers, input } = read.success
  const exchange: Exchange = {
    ...report.begin(request),
    route: served.path,
    accountId: caller?.accountId,
    trialRemaining: caller?.trialRemaining,
    rate: rate.success
  }
  return { exchange, input, caller: caller && ServedOperation.callerOf(caller, headers, { ...found, exchange }, "") }
}

/** Starts the billed call, and answers when it ends. */
const begin = (
  { charge, money, report }: Dependencies,
  served: ServedOperation.ServedOperation,
  { request }: Found,
  { caller, exchange, input }: Admitted,
  { context, isClosing }: Server,
  ended: (answer: Answer.Answer | undefined) => void
): DirectCall => {
  const measured = report.measure(methodOf(request), "http")
  const run = Effect.runForkWith(context)
  let isGone = false

  const answer = (exit: Exit.Exit<Charge.Reply, Failure>): Answer.Answer => {
    if (Exit.isSuccess(exit)) {
      OperationAnswer.note(exchange, exit.value)
      return OperationAnswer.success(served, request, exchange, input.echo, OperationAnswer.atOnce(exit.value))
    }
    const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    if (error !== undefined) return OperationAnswer.failure(error, exchange, money)
    const failure = RequestReport.failureOf(exit.cause)
    if (failure._tag === "Defect") run(RequestReport.logDefect(exit.cause, exchange))
    return answerOf(problemOf(failure), exchange.id)
  }

  const end = (exit: Exit.Exit<Charge.Reply, Failure>): void => {
    const told = isGone ? undefined : orDefect(answer, exit)
    const status = told?.status ?? RequestReport.CLIENT_CLOSED_REQUEST
    if (RequestReport.isLogged(context)) run(report.log(exchange, request.method, status))
    measured.end(exchange.route, status)
    ended(told && Answer.withAll(told, RequestReport.sharedHeaders(exchange, isClosing())))
  }

  const running = start(charge, served, input.value, caller, exchange, context, end)
  return {
    interruptUnsafe: () => running.interrupt(),
    abandon: () => {
      isGone = true
      running.interrupt()
    }
  }
}

/** A bug in an answer ends its request, and not the process. */
const orDefect = (answer: (exit: Exit.Exit<Charge.Reply, Failure>) => Answer.Answer, exit: Exit.Exit<Charge.Reply, Failure>) => {
  try {
    return answer(exit)
  } catch (bug) {
    return answer(Exit.die(bug))
  }
}

/** The call without a fiber where it can be, else in one. */
const start = (
  charge: Charge.Charge["Service"],
  { operation }: ServedOperation.ServedOperation,
  input: object,
  caller: Charge.Caller | undefined,
  { id }: Exchange,
  context: Context.Context<never>,
  ended: (exit: Exit.Exit<Charge.Reply, Failure>) => void
): { readonly interrupt: () => void } => {
  // It has the services of all operations
  const services = context as Context.Context<unknown>
  const started = caller && charge.start(operation, input, caller, services, ended)
  if (started !== undefined) return started
  const call = caller === undefined ? charge.runPublic(operation, input, id) : charge.run(operation, input, caller)
  const fiber = Effect.runForkWith(services)(call)
  fiber.addObserver(ended)
  return { interrupt: () => fiber.interruptUnsafe() }
}
