/** What the routes of sign-ups and sessions share: their input, their envelope, their cookies and their errors. */
import type { Client } from "@millrace/core"
import { Effect, Option, Result } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Fields } from "../Endpoint.ts"
import * as Envelope from "../Envelope.ts"
import { CurrentExchange, type Exchange } from "../Exchange.ts"
import * as Input from "../OperationInput.ts"
import { type Failure, problemOf, responseOf } from "../Problem.ts"
import { InvalidRequest } from "../Refusal.ts"
import * as Body from "../RequestBody.ts"

/** The largest body, in bytes. */
const LIMIT = 8 * 1024

export type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** What a route is given. */
export interface Given<Input = Readonly<Record<string, string>>> {
  readonly request: Request
  readonly exchange: Exchange
  readonly input: Input
}

export interface Answer {
  readonly status: number
  readonly data: unknown
  readonly isPending?: boolean
  readonly cookies?: ReadonlyArray<(response: Response) => Response>
}

/** A route: where it is, what it takes, and its answer. `Input` is the type of its fields. */
export interface Described<Input = Given["input"]> {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: `/${string}`
  readonly params?: Fields
  readonly query?: Fields
  readonly body?: Fields
  /** Refuses a request before its input is looked at. */
  readonly admit?: (request: Request) => Effect.Effect<void, Failure>
  readonly answer: (given: Given<Input>) => Effect.Effect<Answer, Failure>
}

/** Tokens, addresses and credentials are masked in the echo, as secrets of operations are. */
const SECRET = ["address", "token", "credential"]

/** Serves a route. */
export const routeOf = <Input = Given["input"]>({
  admit = () => Effect.void,
  answer,
  body = {},
  method,
  params = {},
  path,
  query = {}
}: Described<Input>): HttpRouter.Route<never, never> => {
  const decode = Input.make({ route: { method, path, params, query, body, status: 200 }, secret: SECRET } as Parameters<
    typeof Input.make
  >[0])
  const handler = Effect.gen(function* () {
    const exchange = yield* CurrentExchange
    exchange.route = path
    const request = yield* HttpServerRequest.HttpServerRequest
    return yield* Effect.catch(
      Effect.gen(function* () {
        yield* admit(request)
        const { echo, value } = yield* inputOf(request, decode)
        const answered = yield* answer({ request, exchange, input: value as Input })
        return respond(request, exchange, path, echo, answered)
      }),
      (failure: Failure) => Effect.succeed(responseOf(problemOf(failure), exchange.id))
    )
  })
  return HttpRouter.route(method, path, handler)
}

const inputOf = Effect.fnUntraced(function* (request: Request, decode: ReturnType<typeof Input.make>) {
  yield* Body.checkLength(request, LIMIT)
  const { json } = yield* Body.read(request, LIMIT)
  const { params } = yield* HttpRouter.RouteContext
  const query = yield* HttpServerRequest.ParsedSearchParams
  const input = decode({ params, query, body: json })
  if (Result.isFailure(input)) return yield* new InvalidRequest({ issues: input.failure })
  return { echo: input.success.echo, value: input.success.value }
})

const respond = (
  { method }: Request,
  { id }: Exchange,
  path: string,
  echo: Input.Input["echo"],
  { cookies = [], data, isPending = false, status }: Answer
): Response => {
  const text = Envelope.text(isPending ? "pending" : "success", JSON.stringify(data), { id, method, path, input: echo })
  const response = HttpServerResponse.text(text, {
    status,
    contentType: "application/json",
    headers: { "cache-control": "private, no-store" }
  })
  return cookies.reduce((response, withCookie) => withCookie(response), response)
}

/** What is known of the browser that asks. */
export const clientOf = ({ headers, remoteAddress }: Request): Client => ({
  userAgent: headers["user-agent"] ?? null,
  address: Option.getOrNull(remoteAddress)
})
