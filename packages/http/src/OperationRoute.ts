/** The route of an operation: size, key, rate, input, scope, then the billed call. Without that call, nothing is held or written. */

import { type ApiKey, Charge, Credits, Money, type Operation } from "@millrace/core"
import { Context, Effect, Result } from "effect"
import { HttpMethod, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Access from "./Access.ts"
import * as ApiPaths from "./ApiPaths.ts"
import * as CallHeaders from "./CallHeaders.ts"
import { PREFIX, type Servable } from "./Endpoint.ts"
import * as Envelope from "./Envelope.ts"
import { CurrentExchange, type Exchange } from "./Exchange.ts"
import * as FileResponse from "./FileResponse.ts"
import * as Input from "./OperationInput.ts"
import { problemOf, responseOf } from "./Problem.ts"
import { InsufficientScope, InvalidRequest, MethodNotAllowed } from "./Refusal.ts"
import * as Body from "./RequestBody.ts"
import * as RequestContext from "./RequestContext.ts"

/** Seconds after which a client may ask for a job that was just accepted. */
const POLL_AFTER = 1

/** `bodyLimit` in bytes; `services` of the operations. */
export const make = Effect.fnUntraced(function* <R>(bodyLimit: number, services: Context.Context<R>) {
  const money = yield* Money.Current
  const inServices = RequestContext.within(services)
  const dependencies: Dependencies = { bodyLimit, charge: yield* Charge.Charge, access: yield* Access.make }

  /** `scope` is undefined where callers need no key. */
  return (operation: Servable, scope: ApiKey.Scope | undefined): HttpRouter.Route<never, never> => {
    const served = describe(operation, scope)
    const handler = Effect.withFiber(({ context }) => {
      const sent = sentIn(context as Context.Context<SentServices>)
      const { exchange } = sent
      exchange.route = served.path
      const answered = Effect.catch(answer(dependencies, served, sent), (failure) => {
        if (failure._tag === "TrialUsedUp") exchange.trialRemaining = 0
        return Effect.succeed(responseOf(problemOf(failure, money), exchange.id))
      })
      return Effect.map(answered, (response) =>
        exchange.trialRemaining === undefined
          ? response
          : HttpServerResponse.setHeader(response, "x-trial-remaining", String(exchange.trialRemaining))
      )
    })
    return HttpRouter.route(operation.route.method, served.path, inServices(handler))
  }
})

interface Dependencies {
  readonly bodyLimit: number
  readonly charge: Charge.Charge["Service"]
  readonly access: Access.Access
}

/** An operation, and what is computed once for all its calls. */
const describe = (operation: Servable, scope: ApiKey.Scope | undefined) => ({
  operation,
  scope,
  path: `${PREFIX}${operation.route.path}` as const,
  isPathSecret: Object.keys(operation.route.params).some((name) => operation.secret.includes(name)),
  decode: Input.make(operation),
  paths: ApiPaths.of(operation)
})
type Served = ReturnType<typeof describe>

type Request = HttpServerRequest.HttpServerRequest

/** A request, and what the router and the middleware found out about it. */
interface Sent {
  readonly request: Request
  readonly exchange: Exchange
  readonly params: Input.Sent["params"]
  readonly query: Input.Sent["query"]
}

type SentServices = Request | HttpRouter.RouteContext | HttpServerRequest.ParsedSearchParams

const sentIn = (context: Context.Context<SentServices>): Sent => ({
  request: Context.get(context, HttpServerRequest.HttpServerRequest),
  exchange: Context.get(context, CurrentExchange),
  params: Context.get(context, HttpRouter.RouteContext).params,
  query: Context.get(context, HttpServerRequest.ParsedSearchParams)
})

const answer = Effect.fnUntraced(function* (dependencies: Dependencies, served: Served, sent: Sent) {
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
  if (reply.billed !== undefined) exchange.trialRemaining = reply.billed.trialRemaining
  exchange.charged = chargedOf(reply)
  if (reply.file !== undefined) return yield* FileResponse.respond(request, reply.file)
  const { wait } = headers
  if (!mayWait(operation, reply)) return success(served, request, exchange, input.echo, { reply, isPending: false, waited: undefined })
  const answered = yield* awaitJob(dependencies.charge, operation, reply, caller?.accountId, wait)
  exchange.charged = chargedOf(answered.reply)
  return success(served, request, exchange, input.echo, answered)
})

/** The caller of the billed call. `text`: the body. */
const callerOf = (
  caller: Access.Caller,
  { idempotencyKey, maxCost, wait }: CallHeaders.CallHeaders,
  { exchange, request }: Sent,
  text: string
): Charge.Caller => ({
  accountId: caller.accountId,
  requestId: exchange.id,
  credential: credentialOf(caller),
  ...(wait === undefined ? {} : { wait }),
  ...(idempotencyKey === undefined ? {} : { idempotency: { key: idempotencyKey, request: `${request.method} ${request.url}\n${text}` } }),
  ...(maxCost === undefined ? {} : { maxCost })
})

const credentialOf = (caller: Access.Caller): Operation.Credential => {
  const { expiresAt, scopes } = caller
  return { scopes, expiresAt, ...("keyId" in caller ? { keyId: caller.keyId } : {}) }
}

/** Counts the call against the rate of its account, or of its client where the operation needs no account. */
const admit = (access: Access.Access, caller: Access.Caller | undefined, request: Request, exchange: Exchange) => {
  exchange.accountId = caller?.accountId
  exchange.trialRemaining = caller?.trialRemaining
  return Effect.map(caller === undefined ? access.admitClient(request) : access.admit(caller.accountId), (rate) => {
    exchange.rate = rate
  })
}

/** The input of a call and the headers about it, with all that is wrong with either in one failure. */
const inputOf = ({ decode }: Served, { params, query, request }: Sent, body: Body.Body | undefined) => {
  const input = decode({ params, query, body: body?.json })
  const headers = CallHeaders.parse(request.headers)
  return Result.isFailure(input) || Result.isFailure(headers)
    ? Result.fail(new InvalidRequest({ issues: [...issuesOf(input), ...issuesOf(headers)] }))
    : Result.succeed({ input: input.success, headers: headers.success })
}

interface Answered {
  readonly reply: Charge.Reply
  readonly isPending: boolean
  /** The seconds that the answer could wait; undefined where it did not wait. */
  readonly waited: number | undefined
}

/** Whether the reply is not final, or a call that may have waited. */
const mayWait = (operation: Servable, { job, retryAfter }: Charge.Reply): boolean =>
  job !== undefined || retryAfter !== undefined || (operation._tag === "Call" && operation.waits === true)

/** The reply to answer. A caller that prefers to wait gets the job's reply once the job has ended. A replay is answered as it was. */
const awaitJob = Effect.fnUntraced(function* (
  charge: Charge.Charge["Service"],
  operation: Servable,
  reply: Charge.Reply,
  accountId: string | undefined,
  wait: number | undefined
) {
  const { job, replayed, retryAfter } = reply
  const isPending = job !== undefined || retryAfter !== undefined
  if (operation._tag === "Call" && operation.waits === true && !replayed) return { reply, isPending, waited: wait }
  if (operation._tag !== "Job" || job === undefined || replayed || accountId === undefined || wait === undefined)
    return { reply, isPending, waited: undefined }
  const waited = yield* charge.awaitJob(operation, accountId, { ...reply, job }, `${wait} seconds`).pipe(
    // The job was accepted: the caller must learn its id, though a store does not answer now
    Effect.catchTag("UpstreamUnavailable", () => Effect.succeed({ reply, ended: false }))
  )
  return { reply: waited.reply, isPending: !waited.ended, waited: wait }
})

const success = (
  { isPathSecret, operation, path, paths }: Served,
  request: Request,
  exchange: Exchange,
  echo: Input.Input["echo"],
  { isPending, reply, waited }: Answered
): HttpServerResponse.HttpServerResponse => {
  const sent = {
    id: reply.requestId,
    method: request.method,
    path: isPathSecret ? path : (request.url.split(/[?#;]/u, 1)[0] ?? request.url),
    input: echo
  }
  return HttpServerResponse.text(Envelope.text(isPending ? "pending" : "success", paths.inText(reply.data), sent), {
    status: operation.route.status,
    contentType: "application/json",
    headers: {
      ...headersOf(reply, exchange),
      ...(isPending ? { "retry-after": String(reply.retryAfter ?? POLL_AFTER) } : {}),
      ...(reply.page === undefined ? {} : { link: linkOf(request.url, reply.page) }),
      ...(reply.cache === undefined ? {} : { "x-cache": reply.cache }),
      ...(waited === undefined ? {} : { "preference-applied": `wait=${waited}` })
    }
  })
}

/** The charge of this request. A replay costs nothing, so that the charges of all answers add up to what the account paid. */
const chargedOf = ({ billed, replayed }: Charge.Reply): Credits.Credits | undefined =>
  billed === undefined ? undefined : replayed ? Credits.zero : billed.charged

const creditHeaders = ({ billed }: Charge.Reply, charged: Credits.Credits | undefined): Readonly<Record<string, string>> =>
  billed === undefined || charged === undefined
    ? {}
    : { "x-credits-charged": String(Credits.toDecimal(charged)), "x-credits-balance": String(Credits.toDecimal(billed.balance)) }

const headersOf = (reply: Charge.Reply, { charged, id }: Exchange): Readonly<Record<string, string>> => ({
  "cache-control": "private, no-store",
  ...creditHeaders(reply, charged),
  ...(reply.replayed ? { "x-request-id": reply.requestId, "idempotent-replayed": "true", "x-replay-request-id": id } : {})
})

const issuesOf = <A>(result: Result.Result<A, ReadonlyArray<Input.Issue>>) => (Result.isFailure(result) ? result.failure : [])

/** The `Link` header of a page: its first, previous, next and last page (RFC 8288). `url` is that of the request. */
const linkOf = (url: string, { number, size, total }: Operation.Page): string => {
  const [path = "", search = ""] = url.split("?", 2)
  const last = Math.max(1, Math.ceil(total / size))
  const to = (page: number, rel: string): string => {
    const query = new URLSearchParams(search)
    query.set("page", String(page))
    query.set("per_page", String(size))
    return `<${path}?${query}>; rel="${rel}"`
  }
  return [
    to(1, "first"),
    ...(number > 1 ? [to(Math.min(number - 1, last), "prev")] : []),
    ...(number < last ? [to(number + 1, "next")] : []),
    to(last, "last")
  ].join(", ")
}
