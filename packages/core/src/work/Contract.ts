/**
 * The contract of an operation: its route, its schemas, its quantity, and the checks before credits are held. The endpoint, the OpenAPI
 * document, the catalog entry, the client and the generators derive from it.
 */
import { type Duration, Effect, Schema } from "effect"
import type { UpstreamNotConfigured } from "./OperationError.ts"

export type Fields = Schema.Struct.Fields
export type Path = `/${string}`
export type Input<Params extends Fields, Query extends Fields, Body extends Fields> = Schema.Struct.Type<Params & Query & Body>

/** The HTTP route of an operation. It is plain data, so the core needs no HTTP library. */
export interface Route<Method extends string, P extends Path, Params extends Fields, Query extends Fields, Body extends Fields> {
  readonly method: Method
  readonly path: P
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** Status of a success: 200 unless the contract says 201 or 202. */
  readonly status: 200 | 201 | 202
}

/** The account and request of a call, before credits are held. */
export interface Requester {
  readonly accountId: string
  readonly requestId: string
}

/** The account, request and reservation of a call. An operation that creates a resource derives its id from the reservation. */
export interface Caller extends Requester {
  readonly reservationId: string
}

export interface Page {
  /** From 1. */
  readonly number: number
  /** The most items of a page. */
  readonly size: number
  /** Items on all pages. */
  readonly total: number
}

/** A link from a reply to a call that can follow it. */
export interface Link {
  /** Key of the following operation. */
  readonly operation: string
  /** Its parameters, each as a JSON pointer (RFC 6901) into the data of the reply, such as `/id`. */
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
  /** A longer description for developers, in Markdown. */
  readonly description?: string
  readonly route: Route<Method, P, Params, Query, Body>
  /** The unit of the price plan in one word: `call` by default, or for example `address`. */
  readonly unit: string
  /** The units to hold credits for: a whole number of at least 0. */
  readonly quantity: (input: Input<Params, Query, Body>) => number
  readonly success: Success
  /** Checks ownership and existence before credits are held. A failure writes nothing. */
  readonly check: (input: Input<Params, Query, Body>, requester: Requester) => Effect.Effect<void, E, R>
  /** The operation calls no upstream, so it has no circuit breaker. */
  readonly local?: true
  /** The time limit of the work. A hold expires at least thirty seconds later. */
  readonly timeout: Duration.Input
  /** Fields of input or data that are never echoed, logged or written in clear. */
  readonly secret: ReadonlyArray<string>
  /** Fails if this host has no provider for the operation. The catalog shows it. */
  readonly configured: Effect.Effect<void, UpstreamNotConfigured, R>
  /** An example call and its reply, for the documentation. */
  readonly example?: { readonly input: Input<Params, Query, Body>; readonly data: Success["Type"] }
  /** Operations that take this one's reply as input. */
  readonly links?: ReadonlyArray<Link>
}

/** The options of a contract. Those left out have a default. */
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

/** Makes a contract, with the defaults of the options that are left out. */
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
  // TypeScript cannot infer this type while the fields are type parameters
  Schema.Struct({ ...params, ...query, ...body }) as unknown as Schema.Codec<Input<Params, Query, Body>, unknown>
