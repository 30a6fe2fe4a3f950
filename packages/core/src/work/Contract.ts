/**
 * What every operation has in common: its route, its schemas, how it is counted, and what is checked before credits are held. The
 * endpoint, the OpenAPI document, the catalog entry, the client and the generators all derive from this value.
 */
import { type Duration, Effect, Schema } from "effect"
import type { UpstreamNotConfigured } from "./OperationError.ts"

export type Fields = Schema.Struct.Fields
export type Path = `/${string}`
export type Input<Params extends Fields, Query extends Fields, Body extends Fields> = Schema.Struct.Type<Params & Query & Body>

/** Where an operation is reached over HTTP: data, so that the core needs no HTTP library. */
export interface Route<Method extends string, P extends Path, Params extends Fields, Query extends Fields, Body extends Fields> {
  readonly method: Method
  readonly path: P
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** Status of a success: 200 unless the contract says 201 or 202. */
  readonly status: 200 | 201 | 202
}

/** Who calls, before anything is held. */
export interface Requester {
  readonly accountId: string
  readonly requestId: string
}

/** Who calls. An operation that creates a resource names it after the reservation. */
export interface Caller extends Requester {
  readonly reservationId: string
}

export interface Page {
  /** From 1. */
  readonly number: number
  /** The most items that a page has. */
  readonly size: number
  /** Items on all pages together. */
  readonly total: number
}

/** From an answer to the next call. */
export interface Link {
  /** Key of the operation that follows. */
  readonly operation: string
  /** Its parameters, each by a JSON pointer (RFC 6901) into the data of the answer, such as `/id`. */
  readonly parameters: Readonly<Record<string, string>>
}

export interface Contract<
  Key extends string,
  Method extends string,
  P extends Path,
  Params extends Fields,
  Query extends Fields,
  Body extends Fields,
  Success extends Schema.Top,
  E,
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
  /** Units of the price plan that the call is held for: a whole number of at least 0. */
  readonly quantity: (input: Input<Params, Query, Body>) => number
  readonly success: Success
  /** Ownership and existence. A failure here is answered before any credit is held, and writes nothing. */
  readonly check: (input: Input<Params, Query, Body>, requester: Requester) => Effect.Effect<void, E, R>
  /** Asks no upstream, so the operation has no circuit breaker. */
  readonly local?: true
  /** Of the work. A hold outlives it by at least thirty seconds. */
  readonly timeout: Duration.Input
  /** Fields of input or data that are never echoed, logged or written in clear. */
  readonly secret: ReadonlyArray<string>
  /** Fails where this host has no provider for the operation: the catalog then says so. */
  readonly configured: Effect.Effect<void, UpstreamNotConfigured, R>
  /** A call and its answer, for readers of the documentation. */
  readonly example?: { readonly input: Input<Params, Query, Body>; readonly data: Success["Type"] }
  /** Operations that take what this one gives. */
  readonly links?: ReadonlyArray<Link>
}

/** A contract as it is written: what it leaves out has a default. */
export interface Options<
  Method extends string,
  P extends Path,
  Params extends Fields,
  Query extends Fields,
  Body extends Fields,
  Success extends Schema.Top,
  ECheck,
  RCheck,
  RConfigured
> {
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
  readonly check?: (input: Input<Params, Query, Body>, requester: Requester) => Effect.Effect<void, ECheck, RCheck>
  /** `call` by default. */
  readonly unit?: string
  /** 1 by default. */
  readonly quantity?: (input: Input<Params, Query, Body>) => number
  readonly local?: true
  readonly secret?: ReadonlyArray<string>
  readonly configured?: Effect.Effect<void, UpstreamNotConfigured, RConfigured>
  readonly example?: { readonly input: NoInfer<Input<Params, Query, Body>>; readonly data: NoInfer<Success["Type"]> }
  readonly links?: ReadonlyArray<Link>
}

export const make = <
  const Key extends string,
  const Method extends string,
  const P extends Path,
  Success extends Schema.Top,
  Params extends Fields = {},
  Query extends Fields = {},
  Body extends Fields = {},
  ECheck = never,
  RCheck = never,
  RConfigured = never
>(
  key: Key,
  options: Options<Method, P, Params, Query, Body, Success, ECheck, RCheck, RConfigured>,
  timeout: Duration.Input
): Contract<Key, Method, P, Params, Query, Body, Success, ECheck, RCheck | RConfigured> => ({
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
  ...(options.local === undefined ? {} : { local: options.local }),
  timeout,
  secret: options.secret ?? [],
  configured: options.configured ?? Effect.void,
  ...(options.example === undefined ? {} : { example: options.example }),
  ...(options.links === undefined ? {} : { links: options.links })
})

/** The schema of an operation's whole input: path, query and body fields together. */
export const inputOf = <Params extends Fields, Query extends Fields, Body extends Fields>({
  params,
  query,
  body
}: Route<string, Path, Params, Query, Body>): Schema.Codec<Input<Params, Query, Body>, unknown> =>
  // A struct of the three has this type, which no type can tell of fields not known yet
  Schema.Struct({ ...params, ...query, ...body }) as unknown as Schema.Codec<Input<Params, Query, Body>, unknown>
