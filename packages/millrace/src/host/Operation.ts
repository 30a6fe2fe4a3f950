/**
 * Operations as promises: the work is a function, sync or async, and the schemas are of any library. `operation` makes an operation of
 * `@millrace/core`, so route, catalog entry, OpenAPI and clients derive from it like from any other.
 */
import { Operation as Core, InvalidInput, type OperationError } from "@millrace/core"
import { Effect, type Schema } from "effect"
import { assertDefinition, assertOnePlace, assertSecret } from "./Mistakes.ts"
import * as Schemas from "./Schemas.ts"
import { outcomeOf, performed, type Result, type Returned } from "./Work.ts"

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

/** The parts of a request without a schema. */
export type None = undefined
export type Part = Schemas.AnySchema | None

/** The names of the parameters in a path: `/greeting/:name` has `name`. */
export type ParameterNames<P extends string> = P extends `${string}:${infer Rest}`
  ? Rest extends `${infer Name}/${infer Tail}`
    ? Name | ParameterNames<`/${Tail}`>
    : Rest
  : never

/** The schema of a path's parameters: one field for each, and no other. */
type ParametersOf<P extends string, Params> = [ParameterNames<P>] extends [never]
  ? { readonly params?: undefined }
  : [keyof Schemas.InputOf<Params>] extends [ParameterNames<P>]
    ? [ParameterNames<P>] extends [keyof Schemas.InputOf<Params>]
      ? { readonly params: Params }
      : {
          readonly params: {
            readonly "the path has a parameter without a schema": Exclude<ParameterNames<P>, keyof Schemas.InputOf<Params>>
          }
        }
    : { readonly params: { readonly "the path has no such parameter": Exclude<keyof Schemas.InputOf<Params>, ParameterNames<P>> } }

/** A route as it is read, whatever its schemas. */
export interface AnyRoute {
  readonly method: Method
  readonly path: Path
  readonly params?: unknown
  readonly query?: unknown
  readonly body?: unknown
}

export type Path = `/${string}`

export type Route<P extends string, Params, Query, Body> = {
  readonly method: Method
  /** Below `/api/v1`, such as `/greeting/:name`. */
  readonly path: P
  readonly query?: Query
  /** Of a request with a body: the fields of its JSON object. */
  readonly body?: Body
} & ParametersOf<P, Params>

/** Who calls, and what the work can use. */
export interface CallContext {
  /** Aborts when the caller leaves, the time is over, or the server stops. */
  readonly signal: AbortSignal
  /** The id of the account. */
  readonly account: string
  readonly requestId: string
  /** The id of the hold. It is unique to the call: use it as the upstream's idempotency key. */
  readonly reservationId: string
}

/** What shared options say about an operation. */
export interface Described<Input> {
  readonly summary: string
  /** Markdown, for the documentation. */
  readonly description?: string
  /** Credits for each unit, with at most three decimals. */
  readonly price: number
  /** The unit of the price in one word: `call` by default. */
  readonly unit?: string
  /** How many units a call asks for: 1 by default. A whole number. */
  readonly quantity?: (input: Input) => number
  /** Milliseconds after which the work is aborted. */
  readonly timeout?: number
  /** Fields that are never echoed, logged or shown. */
  readonly secret?: ReadonlyArray<string>
}

/** An operation whose caller waits for the result. */
export interface Operation<Input, Data, Services = never> {
  readonly _tag: "Operation"
  readonly key: string
  /** Credits for each unit. */
  readonly price: number
  readonly core: Core.AnyCall<OperationError, Services>
  /** Reads an input as a caller in code gives it. Own operations do so before credits are held. */
  readonly decode?: (input: unknown) => Effect.Effect<object, InvalidInput>
  /** Reads the result from its JSON. Undefined where the JSON is the result. */
  readonly decodeData?: Schemas.Decode
  /** Only for inference. */
  readonly "~types"?: { readonly input: Input; readonly data: Data; readonly services: Services }
}

/** The input of a route, as a caller gives it. */
export type Input<Params, Query, Body> = Schemas.InputOf<Params> & Schemas.InputOf<Query> & Schemas.InputOf<Body>
/** The input of a route, as the work gets it. */
export type Parsed<Params, Query, Body> = Schemas.OutputOf<Params> & Schemas.OutputOf<Query> & Schemas.OutputOf<Body>

/**
 * Defines an operation. The work returns what `success` accepts. Callers in code get what `success` makes of it: with a schema of Effect the
 * same value, such as a `Date`, and with one of another library its JSON. Over HTTP they get the JSON. Throws a sentence that names the
 * operation if its definition is wrong.
 */
export const operation = <
  const P extends Path,
  Success extends Schemas.AnySchema,
  Params extends Part = None,
  Query extends Part = None,
  Body extends Part = None,
  Services = never
>(
  key: string,
  options: Described<Parsed<Params, Query, Body>> & {
    readonly route: Route<P, Params, Query, Body>
    readonly success: Success
    readonly run: (
      input: Parsed<Params, Query, Body>,
      call: CallContext
    ) => Returned<Schemas.InputOf<Success> | Result<Schemas.InputOf<Success>>, Services>
  }
): Operation<Input<Params, Query, Body>, Schemas.DataOf<Success>, Services> => {
  assertDefinition(key, options, "success")
  const request = requestOf(key, options.route as AnyRoute)
  const success = Schemas.output(options.success, `the result of ${quoted(key)}`)
  const core = Core.make(key, {
    ...contractOf(key, options, request),
    success: Schemas.documented(success.jsonSchema),
    run: (sent: Sent, { accountId, requestId, reservationId }: Core.Caller) =>
      Effect.flatMap(request.parse(sent), (input) =>
        Effect.flatMap(
          performed(key, (signal) => options.run(input as never, { signal, account: accountId, requestId, reservationId })),
          (returned) => outcomeOf(key, success, returned, options.quantity?.(input as never) ?? 1)
        )
      ),
    ...(options.timeout === undefined ? {} : { timeout: options.timeout })
  })
  return {
    _tag: "Operation",
    key,
    price: options.price,
    core: core as Core.AnyCall<OperationError, Services>,
    ...(success.decode && { decodeData: success.decode })
  }
}

type Sent = Readonly<Record<string, unknown>>

export const quoted = (key: string): string => JSON.stringify(key)

/** The fields of a request, and how they are validated. */
export interface Request {
  readonly route: {
    readonly method: Method
    readonly path: Path
    readonly params: Schema.Struct.Fields
    readonly query: Schema.Struct.Fields
    readonly body: Schema.Struct.Fields
  }
  /** Validates an input, once for each input. */
  readonly parse: (sent: Sent) => Effect.Effect<object, OperationError>
  /** The validated input, if it was validated before. */
  readonly parsed: (sent: Sent) => object | undefined
}

export const requestOf = (key: string, route: AnyRoute): Request => {
  const parts = (["params", "query", "body"] as const).flatMap((name) => {
    const schema = route[name]
    if (schema === undefined) return []
    const where = `${name === "params" ? "params" : `the ${name}`} of ${quoted(key)}`
    const converted = Schemas.convert(schema as Schemas.AnySchema, "input", where)
    return [{ name, converted, fields: Schemas.fieldsOf(converted, where) }]
  })
  assertOnePlace(key, parts)
  const fieldsOf = (name: "params" | "query" | "body") => parts.find((part) => part.name === name)?.fields ?? {}
  const known = new WeakMap<object, object>()
  const parse = (sent: Sent): Effect.Effect<object, OperationError> => {
    const before = known.get(sent)
    if (before !== undefined) return Effect.succeed(before)
    const validated = Effect.forEach(parts, ({ converted, fields, name }) => {
      const own = Object.fromEntries(Object.entries(sent).filter(([field]) => Object.hasOwn(fields, field)))
      return Effect.result(converted.validate(name === "body" ? own : Schemas.typed(converted, own)))
    })
    return Effect.flatMap(validated, (results) => {
      const issues = results.flatMap((result) => (result._tag === "Failure" ? result.failure : []))
      if (issues.length > 0) return Effect.fail(invalid(issues))
      const input = Object.assign({}, ...results.map((result) => (result._tag === "Success" ? result.success : {})))
      known.set(sent, input)
      return Effect.succeed(input)
    })
  }
  return {
    route: { method: route.method, path: route.path, params: fieldsOf("params"), query: fieldsOf("query"), body: fieldsOf("body") },
    parse,
    parsed: (sent) => known.get(sent)
  }
}

/** All issues in one failure: the first one's field, and every message. */
export const invalid = (issues: ReadonlyArray<Schemas.Issue>): InvalidInput => {
  const [first, ...others] = issues
  const messages = others.map(({ field, message }) => (field === "" ? message : `${field}: ${message}`))
  return new InvalidInput({ field: first?.field || "input", message: [first?.message ?? "is invalid", ...messages].join("; ") })
}

/** The options that calls and jobs share, for `@millrace/core`. */
export const contractOf = (key: string, options: Described<never>, { parse, parsed, route }: Request) => {
  const { description, price, quantity, secret, summary, unit } = options
  assertSecret(key, secret, Object.keys({ ...route.params, ...route.query, ...route.body }))
  return {
    summary,
    price,
    ...(description === undefined ? {} : { description }),
    route,
    check: (sent: Sent) => Effect.asVoid(parse(sent)),
    ...(unit === undefined ? {} : { unit }),
    // `check` has validated the input
    ...(quantity === undefined ? {} : { quantity: (sent: Sent) => quantity((parsed(sent) ?? sent) as never) }),
    ...(secret === undefined ? {} : { secret })
  }
}
