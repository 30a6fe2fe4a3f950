/** The route of an operation: size, key, rate, input, scope, then the billed call. Without that call, nothing is held or written. */

import { Charge, Money } from "@millrace/core"
import { Context, Effect } from "effect"
import { HttpMethod, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Access from "./Access.ts"
import * as Answer from "./Answer.ts"
import { CurrentExchange, type Exchange } from "./Exchange.ts"
import * as FileResponse from "./FileResponse.ts"
import * as OperationAnswer from "./OperationAnswer.ts"
import { InsufficientScope, MethodNotAllowed } from "./Refusal.ts"
import * as Body from "./RequestBody.ts"
import * as RequestContext from "./RequestContext.ts"
import { callerOf, inputOf, type Sent, type ServedOperation } from "./ServedOperation.ts"

/** `bodyLimit` in bytes; `services` of the operations. */
export const make = Effect.fnUntraced(function* <R>(bodyLimit: number, services: Context.Context<R>) {
  const money = yield* Money.Current
  const inServices = RequestContext.within(services)
  const dependencies: Dependencies = { bodyLimit, charge: yield* Charge.Charge, access: yield* Access.make }

  return (served: ServedOperation): HttpRouter.Route<never, never> => {
    const handler = Effect.withFiber(({ context }) => {
      const sent = sentIn(context as Context.Context<SentServices>)
      const { exchange } = sent
      exchange.route = served.path
      return Effect.catch(answer(dependencies, served, sent), (failure) =>
        Effect.succeed(Answer.responseOf(OperationAnswer.failure(failure, exchange, money)))
      )
    })
    return HttpRouter.route(served.operation.route.method, served.path, inServices(handler))
  }
})

interface Dependencies {
  readonly bodyLimit: number
  readonly charge: Charge.Charge["Service"]
  readonly access: Access.Access
}

type Request = HttpServerRequest.HttpServerRequest

/** What this way needs of a request besides: where it comes from, and its body. */
type Received = Sent & { readonly request: Request }

type SentServices = Request | HttpRouter.RouteContext | HttpServerRequest.ParsedSearchParams

const sentIn = (context: Context.Context<SentServices>): Received => ({
  request: Context.get(context, HttpServerRequest.HttpServerRequest),
  exchange: Context.get(context, CurrentExchange),
  params: Context.get(context, HttpRouter.RouteContext).params,
  query: Context.get(context, HttpServerRequest.ParsedSearchParams)
})

const answer = Effect.fnUntraced(function* (dependencies: Dependencies, served: ServedOperation, sent: Received) {
  const { operation, scope } = served
  const { exchange, request } = sent
  // HEAD would be charged like the call
  if (request.method !== operation.route.method) return yield* new MethodNotAllowed({ allow: [operation.route.method] })
  yield* Body.checkLength(request, dependencies.bodyLimit)
  const caller = scope === undefined ? undefined : yield* dependencies.access.authenticate(request)
  yield* admit(dependencies.access, caller, request, exchange)
  const body = HttpMethod.hasBody(operation.route.method) ? yield* Body.read(request, dependencies.bodyLimit) : undefined
  const { headers, input } = yield* Effect.fromResult(inputOf(served, sent, body))
  if (caller !== undefined && scope !== undefined && !caller.scopes.includes(scope)) return yield* new InsufficientScope({ scope })
  const reply = yield* caller === undefined
    ? dependencies.charge.runPublic(operation, input.value, exchange.id)
    : dependencies.charge.run(operation, input.value, callerOf(caller, headers, sent, body?.text ?? ""))
  OperationAnswer.note(exchange, reply)
  if (reply.file !== undefined)
    return HttpServerResponse.setHeaders(yield* FileResponse.respond(request, reply.file), OperationAnswer.trialHeaders(exchange))
  const answered = yield* awaitJob(dependencies.charge, operation, reply, caller?.accountId, headers.wait)
  exchange.charged = OperationAnswer.chargedOf(answered.reply)
  return Answer.responseOf(OperationAnswer.success(served, request, exchange, input.echo, answered))
})

/** Counts the call against the rate of its account, or of its client where the operation needs no account. */
const admit = (access: Access.Access, caller: Access.Caller | undefined, request: Request, exchange: Exchange) => {
  exchange.accountId = caller?.accountId
  exchange.trialRemaining = caller?.trialRemaining
  return Effect.map(caller === undefined ? access.admitClient(request) : access.admit(caller.accountId), (rate) => {
    exchange.rate = rate
  })
}

/** The reply to answer. A caller that prefers to wait gets the job's reply once the job has ended. A replay is answered as it was. */
const awaitJob = (
  charge: Charge.Charge["Service"],
  operation: ServedOperation["operation"],
  reply: Charge.Reply,
  accountId: string | undefined,
  wait: number | undefined
): Effect.Effect<OperationAnswer.Answered, Effect.Error<ReturnType<typeof charge.awaitJob>>> => {
  const atOnce = OperationAnswer.atOnce(reply)
  const { job, replayed } = reply
  if (operation._tag === "Call" && operation.waits === true && !replayed) return Effect.succeed({ ...atOnce, waited: wait })
  if (operation._tag !== "Job" || job === undefined || replayed || accountId === undefined || wait === undefined)
    return Effect.succeed(atOnce)
  return charge.awaitJob(operation, accountId, { ...reply, job }, `${wait} seconds`).pipe(
    // The job was accepted: the caller must learn its id, though a store does not answer now
    Effect.catchTag("UpstreamUnavailable", () => Effect.succeed({ reply, ended: false })),
    Effect.map(({ ended, reply }) => ({ reply, isPending: !ended, waited: wait }))
  )
}
