/**
 * The client for programs in Effect. Calls are effects on an `HttpClient`, traced and interruptible. Input and data are encoded and decoded
 * by the schemas of the operations; amounts are in thousandths of a credit.
 */
import { Credits, Ids, type Operation } from "@millrace/core"
import { Clock, Effect, Random, Redacted, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import type { Api, Groups, OperationsOf } from "../Api.ts"
import type { Servable } from "../Endpoint.ts"
import * as Exchange from "./Exchange.ts"
import { type Failure, isFailure, UnexpectedAnswer } from "./Failure.ts"
import { type Arguments, type Grouped, grouped } from "./Methods.ts"
import { policyOf, type RetryOptions, timeoutOfNext, waitBeforeNext } from "./Retry.ts"
import { parse, routesOf } from "./Routes.ts"

export interface CallOptions extends Omit<Exchange.CallOptions, "maxCredits"> {
  /** A more expensive call is refused before anything is charged. */
  readonly maxCost?: Credits.Credits
}

export interface Options {
  /** Where Millrace is mounted, such as `https://api.example.com`. */
  readonly baseUrl: string
  readonly apiKey?: Redacted.Redacted | string
  readonly retry?: RetryOptions
}

export type Reply<Data> = Exchange.Reply<Data, Credits.Credits>

/** Input that the operation does not take is a defect. */
export type Method<Op> =
  Op extends Operation.Operation<infer _K, infer Route, infer Success, infer _E, infer _R>
    ? (
        ...args: Arguments<Schema.Struct.Type<Route["params"] & Route["query"] & Route["body"]>, CallOptions>
      ) => Effect.Effect<Reply<Op extends { readonly _tag: "File" } ? Uint8Array<ArrayBuffer> : Success["Type"]>, Failure>
    : never

export type Client<Op extends Servable> = Grouped<Op, { readonly [Key in Op["key"]]: Method<Extract<Op, { readonly key: Key }>> }>

/** A client of every operation of an API. */
export const make = <G extends Groups>(
  api: Api<G>,
  { baseUrl, apiKey, retry }: Options
): Effect.Effect<Client<OperationsOf<G>>, never, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const connection: Connection = {
      http: yield* HttpClient.HttpClient,
      root: baseUrl.replace(/\/+$/u, ""),
      key: Redacted.isRedacted(apiKey) ? Redacted.value(apiKey) : apiKey,
      policy: policyOf(retry)
    }
    const ids = yield* Ids
    const routes: Readonly<Record<string, string>> = routesOf(api)
    const methods = api.operations.map((operation) => [operation.key, methodOf(connection, () => ids.uuid(), operation, routes)] as const)
    // The methods follow from the same operations, in types as in values
    return grouped(methods) as Client<OperationsOf<G>>
  })

/** Where calls go, and how often they are tried. */
interface Connection {
  readonly http: HttpClient.HttpClient
  readonly root: string
  readonly key: string | undefined
  readonly policy: ReturnType<typeof policyOf>
}

const methodOf = (
  connection: Connection,
  newKey: () => string,
  { key, route, success }: Servable,
  routes: Readonly<Record<string, string>>
) => {
  const place = parse(routes[key] ?? "")
  const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(Schema.Struct({ ...route.params, ...route.query, ...route.body })))
  const decode = place.isFile ? Effect.succeed : Schema.decodeUnknownEffect(Schema.toCodecJson(success))
  return Effect.fn(`millrace.${key}`)(function* (input: object = {}, { idempotencyKey = newKey(), maxCost }: CallOptions = {}) {
    const fields = yield* Effect.orDie(encode(input))
    const options = { idempotencyKey, ...(maxCost === undefined ? {} : { maxCredits: Credits.toDecimal(maxCost) }) }
    const outgoing = Exchange.request(place, Object.fromEntries(Object.entries(fields ?? {})), options, connection.key)
    const reply = yield* send(connection, outgoing, idempotencyKey, yield* Clock.currentTimeMillis, 1)
    const data = yield* Effect.mapError(
      decode(reply.data),
      (cause) =>
        new UnexpectedAnswer(
          "The answer does not have the shape that the operation promises.",
          route.status,
          { idempotencyKey, retryable: false, retryAfter: undefined },
          { cause }
        )
    )
    return {
      ...reply,
      data,
      charged: creditsOf(reply.charged),
      balance: reply.balance === undefined ? undefined : creditsOf(reply.balance)
    }
  })
}

/** Sends a request until it is answered, or its retry policy gives up. `startedAt` in milliseconds since 1970; `attempts` from 1. */
const send = (
  connection: Connection,
  outgoing: Exchange.Outgoing,
  idempotencyKey: string,
  startedAt: number,
  attempts: number
): Effect.Effect<Exchange.Reply<unknown>, Failure> =>
  Effect.gen(function* () {
    const spent = (yield* Clock.currentTimeMillis) - startedAt
    const outcome = yield* attempt(connection, outgoing, idempotencyKey).pipe(
      Effect.timeout(timeoutOfNext(connection.policy, spent)),
      Effect.catch((cause) => {
        // A request that cannot be sent is a bug
        if (cause._tag === "HttpClientError" && UNSENDABLE.has(cause.reason._tag)) return Effect.die(cause)
        return Effect.succeed(Exchange.noAnswer(cause._tag === "TimeoutError", idempotencyKey, cause))
      })
    )
    if (!isFailure(outcome)) return outcome
    const now = yield* Clock.currentTimeMillis
    const wait = waitBeforeNext(connection.policy, outcome, { attempts, spent: now - startedAt }, yield* Random.next)
    if (wait === undefined) return yield* Effect.fail(outcome)
    yield* Effect.sleep(wait)
    return yield* send(connection, outgoing, idempotencyKey, startedAt, attempts + 1)
  })

const attempt = Effect.fnUntraced(function* (
  { http, root }: Connection,
  { method, target, headers, body, isFile }: Exchange.Outgoing,
  idempotencyKey: string
) {
  const request = HttpClientRequest.make(isMethod(method) ? method : "GET")(`${root}${target}`, { headers })
  const response = yield* http.execute(body === undefined ? request : HttpClientRequest.bodyText(request, body, "application/json"))
  const bytes = new Uint8Array(yield* response.arrayBuffer)
  const answer = { status: response.status, header: (name: string) => response.headers[name], bytes }
  return Exchange.read(answer, { isFile, idempotencyKey }, yield* Clock.currentTimeMillis)
})

const UNSENDABLE: ReadonlySet<string> = new Set(["EncodeError", "InvalidUrlError"])

const isMethod = (method: string): method is Servable["route"]["method"] => ["GET", "POST", "PUT", "PATCH", "DELETE"].includes(method)

const creditsOf = (decimal: number): Credits.Credits => Credits.of(Math.round(decimal * 1_000))
