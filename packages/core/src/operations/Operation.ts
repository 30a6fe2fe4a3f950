/**
 * One billable operation: its contract, how it is counted, what is checked before credits are held, and what runs while
 * they are. Everything else about it (endpoint, OpenAPI, catalog entry, client, generators) derives from this value.
 */
import { type Duration, Effect, type Schema } from "effect"
import type { OperationError, UpstreamNotConfigured } from "./OperationError.ts"

type Fields = Schema.Struct.Fields
type Path = `/${string}`
type Input<Params extends Fields, Query extends Fields, Body extends Fields> = Schema.Struct.Type<Params & Query & Body>

/** Where an operation is reached over HTTP: data, so that the core stays free of any HTTP library. */
export interface Route<Method extends string, P extends Path, Params extends Fields, Query extends Fields, Body extends Fields> {
  readonly method: Method
  readonly path: P
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** Status of a success: 200 unless the contract says 201 or 202. */
  readonly status: 200 | 201 | 202
}

/** Who calls, and what the call's resources are named after. */
export interface Caller {
  readonly accountId: string
  readonly requestId: string
  readonly reservationId: string
}

/** What an operation gives back; `quantity` when less was done than was held for. */
export interface Outcome<A> {
  readonly data: A
  readonly quantity?: number
}

export interface Operation<
  Key extends string,
  Method extends string,
  P extends Path,
  Params extends Fields,
  Query extends Fields,
  Body extends Fields,
  Success extends Schema.Top,
  E extends OperationError,
  R
> {
  /** Names the operation in events, the price plan and the catalog. Never changes. */
  readonly key: Key
  readonly summary: string
  /** What a developer should know beside the summary: sentences, in Markdown. */
  readonly description?: string
  readonly route: Route<Method, P, Params, Query, Body>
  /** What the price plan prices: a call, unless it says otherwise, such as an address. One word. */
  readonly unit: string
  /** Units of the price plan that the call is held for. */
  readonly quantity: (input: Input<Params, Query, Body>) => number
  readonly success: Success
  /** Ownership, existence, breaker: what fails here is answered before any credit is held, and writes nothing. */
  readonly check: (input: Input<Params, Query, Body>, caller: Omit<Caller, "reservationId">) => Effect.Effect<void, E, R>
  readonly run: (input: Input<Params, Query, Body>, caller: Caller) => Effect.Effect<Outcome<Success["Type"]>, E, R>
  /** For operations that create or change something: what became of a call whose process died; nothing when it left no trace. */
  readonly recover?: (reservationId: string) => Effect.Effect<Outcome<Success["Type"]> | undefined, E, R>
  /** The hold outlives this by at least thirty seconds. */
  readonly timeout: Duration.Input
  /** Fields of input or data that are never echoed, logged or written in clear. */
  readonly secret: ReadonlyArray<string>
  /** Fails where no provider was set up for it at this host: the catalog then says so. */
  readonly configured: Effect.Effect<void, UpstreamNotConfigured, R>
  /** A call and its answer, for whoever reads the documentation. */
  readonly example?: { readonly input: Input<Params, Query, Body>; readonly data: Success["Type"] }
  /** Operations that take what this one gives. */
  readonly links?: ReadonlyArray<Link>
}

/** From an answer to the next call. */
export interface Link {
  /** Key of the operation that follows. */
  readonly operation: string
  /** Its parameters, each by a JSON pointer (RFC 6901) into the data of the answer, such as `/id`. */
  readonly parameters: Readonly<Record<string, string>>
}

/** Any operation, for lists of them. */
// biome-ignore lint/suspicious/noExplicitAny: inputs are contravariant, so only `any` admits every operation
export type Any = Operation<string, string, Path, any, any, any, Schema.Codec<any, any>, OperationError, any>

/** What an operation needs to run. */
export type Services<Op extends Any> =
  Op extends Operation<string, string, Path, infer _P, infer _Q, infer _B, infer _S, infer _E, infer R> ? R : never

export const make = <
  const Key extends string,
  const Method extends string,
  const P extends Path,
  Success extends Schema.Top,
  ERun extends OperationError,
  RRun,
  Params extends Fields = {},
  Query extends Fields = {},
  Body extends Fields = {},
  ECheck extends OperationError = never,
  RCheck = never,
  ERecover extends OperationError = never,
  RRecover = never,
  RConfigured = never
>(
  key: Key,
  options: {
    readonly summary: string
    readonly description?: string
    readonly route: {
      readonly method: Method
      readonly path: P
      readonly params?: Params
      readonly query?: Query
      readonly body?: Body
      readonly status?: 200 | 201 | 202
    }
    readonly success: Success
    readonly run: (input: Input<Params, Query, Body>, caller: Caller) => Effect.Effect<Outcome<Success["Type"]>, ERun, RRun>
    readonly check?: (input: Input<Params, Query, Body>, caller: Omit<Caller, "reservationId">) => Effect.Effect<void, ECheck, RCheck>
    /** `call` by default. */
    readonly unit?: string
    readonly quantity?: (input: Input<Params, Query, Body>) => number
    readonly recover?: (reservationId: string) => Effect.Effect<Outcome<Success["Type"]> | undefined, ERecover, RRecover>
    readonly timeout?: Duration.Input
    readonly secret?: ReadonlyArray<string>
    readonly configured?: Effect.Effect<void, UpstreamNotConfigured, RConfigured>
    readonly example?: { readonly input: NoInfer<Input<Params, Query, Body>>; readonly data: NoInfer<Success["Type"]> }
    readonly links?: ReadonlyArray<Link>
  }
): Operation<Key, Method, P, Params, Query, Body, Success, ERun | ECheck | ERecover, RRun | RCheck | RRecover | RConfigured> => ({
  key,
  summary: options.summary,
  ...(options.description === undefined ? {} : { description: options.description }),
  route: {
    method: options.route.method,
    path: options.route.path,
    params: options.route.params ?? ({} as Params),
    query: options.route.query ?? ({} as Query),
    body: options.route.body ?? ({} as Body),
    status: options.route.status ?? 200
  },
  unit: options.unit ?? "call",
  quantity: options.quantity ?? (() => 1),
  success: options.success,
  check: options.check ?? (() => Effect.void),
  run: options.run,
  ...(options.recover === undefined ? {} : { recover: options.recover }),
  timeout: options.timeout ?? "30 seconds",
  secret: options.secret ?? [],
  configured: options.configured ?? Effect.void,
  ...(options.example === undefined ? {} : { example: options.example }),
  ...(options.links === undefined ? {} : { links: options.links })
})
