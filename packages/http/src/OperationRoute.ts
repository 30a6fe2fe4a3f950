/**
 * The route of an operation. The order is the same for all: size, key, rate, input, scope, and then the billed call. Whatever fails
 * before the call holds nothing and writes nothing.
 */

import { type ApiKey, Charge, Credits } from "@millrace/core"
import { type Context, Effect, Result } from "effect"
import { HttpMethod, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Access from "./Access.ts"
import * as ApiPaths from "./ApiPaths.ts"
import * as CallHeaders from "./CallHeaders.ts"
import { PREFIX, type Servable } from "./Endpoint.ts"
import * as Envelope from "./Envelope.ts"
import { CurrentExchange, type Exchange } from "./Exchange.ts"
import * as Artifact from "./FileResponse.ts"
import * as Input from "./OperationInput.ts"
import * as Pages from "./PageLinks.ts"
import * as Preference from "./PreferHeader.ts"
import { problemOf, responseOf } from "./Problem.ts"
import { InsufficientScope, InvalidRequest, MethodNotAllowed } from "./Refusal.ts"
import * as Body from "./RequestBody.ts"

/** Seconds after which to ask for a job that was just accepted. */
const POLL_AFTER = 1

export interface Options<R> {
  /** Bytes. */
  readonly bodyLimit: number
  /** What the operations need. */
  readonly services: Context.Context<R>
}

export const make = Effect.fnUntraced(function* <R>({ bodyLimit, services }: Options<R>) {
  const charge = yield* Charge.Charge
  const access = yield* Access.make

  /** `scope` undefined: no key is asked for. */
  return (operation: Servable, scope: ApiKey.Scope | undefined): HttpRouter.Route<never, never> => {
    const { route, secret } = operation
    const path = `${PREFIX}${route.path}` as const
    const decode = Input.make(operation)
    const paths = ApiPaths.of(operation)
    const isPathSecret = Object.keys(route.params).some((name) => secret.includes(name))

    const answer = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, exchange: Exchange) {
      // A look at the headers of a billed call would be charged like the call
      if (request.method !== route.method) return yield* new MethodNotAllowed({ allow: [route.method] })
      yield* Body.checkLength(request, bodyLimit)
      const caller = scope === undefined ? undefined : yield* access.authenticate(request)
      exchange.accountId = caller?.accountId
      exchange.rate = yield* caller === undefined ? access.admitClient(request) : access.admit(caller.accountId)
      const body = HttpMethod.hasBody(route.method) ? yield* Body.read(request, bodyLimit) : undefined
      const { params } = yield* HttpRouter.RouteContext
      const query = yield* HttpServerRequest.ParsedSearchParams
      const input = decode({ params, query, body: body?.json })
      const headers = CallHeaders.parse(request.headers)
      if (Result.isFailure(input) || Result.isFailure(headers))
        return yield* new InvalidRequest({ issues: [...issuesOf(input), ...issuesOf(headers)] })
      if (caller !== undefined && scope !== undefined && !caller.scopes.includes(scope)) return yield* new InsufficientScope({ scope })
      const { idempotencyKey, maxCost } = headers.success
      const reply = yield* caller === undefined
        ? charge.runPublic(operation, input.success.value, exchange.id)
        : charge.run(operation, input.success.value, {
            accountId: caller.accountId,
            requestId: exchange.id,
            ...(idempotencyKey === undefined
              ? {}
              : { idempotency: { key: idempotencyKey, request: `${request.method} ${request.url}\n${body?.text ?? ""}` } }),
            ...(maxCost === undefined ? {} : { maxCost })
          })
      exchange.charged = chargedOf(reply)
      if (operation.download !== undefined && caller !== undefined) {
        const { accountId } = caller
        return yield* Artifact.respond(request, yield* operation.download(input.success.value, { accountId, requestId: exchange.id }))
      }
      const { data, isPending, waited } = yield* lastWord(reply, caller?.accountId, Preference.waitOf(request.headers["prefer"]))
      const echo = {
        id: reply.requestId,
        method: request.method,
        path: isPathSecret ? path : (request.url.split(/[?#;]/u, 1)[0] ?? request.url),
        input: input.success.echo
      }
      return HttpServerResponse.text(Envelope.text(isPending ? "pending" : "success", paths.inText(data), echo), {
        status: route.status,
        contentType: "application/json",
        headers: {
          ...headersOf(reply, exchange),
          ...(isPending ? { "retry-after": String(reply.retryAfter ?? POLL_AFTER) } : {}),
          ...(reply.page === undefined ? {} : { link: Pages.linkOf(request.url, reply.page) }),
          ...(waited === undefined ? {} : { "preference-applied": `wait=${waited}` })
        }
      })
    })

    /** Of a job that was accepted, what can be said once it has ended, for who wants to wait; a kept reply is given as it was. */
    const lastWord = Effect.fnUntraced(function* (reply: Charge.Reply, accountId: string | undefined, wait: number | undefined) {
      const isPending = reply.job !== undefined || reply.retryAfter !== undefined
      if (operation.job === undefined || reply.job === undefined || reply.replayed || accountId === undefined || wait === undefined)
        return { data: reply.data, isPending, waited: undefined }
      const { data, ended } = yield* operation.job.answer(accountId, reply.job.id, `${wait} seconds`)
      return { data, isPending: !ended, waited: wait }
    })

    const handler = Effect.gen(function* () {
      const exchange = yield* CurrentExchange
      exchange.route = path
      return yield* Effect.catch(answer(yield* HttpServerRequest.HttpServerRequest, exchange), (failure) =>
        Effect.succeed(responseOf(problemOf(failure), exchange.id))
      )
    })
    return HttpRouter.route(route.method, path, Effect.provideContext(handler, services))
  }
})

/** What this very request cost: a replay costs nothing, so that the charges of all answers add up to what was paid. */
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
