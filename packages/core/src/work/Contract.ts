/**
 * The contract of an operation: its route, its schemas, its quantity, and the checks before credits are held. The endpoint, the OpenAPI
 * document, the catalog entry, the client and the generators derive from it.
 */
import { type Duration, Effect, Schema } from "effect"
import type { Scope } from "../accounts/ApiKey.ts"
import * as Credits from "../Credits.ts"
import type { Timestamp } from "../Timestamp.ts"
import type { UpstreamNotConfigured } from "./OperationError.ts"

export type Fields = Schema.Struct.Fields
export type Path = `/${string}`

/** The HTTP route of an operation. It is plain data, so the core needs no HTTP library. */
export interface Route<
  Method extends string = string,
  P extends Path = Path,
  Params extends Fields = Fields,
  Query extends Fields = Fields,
  Body extends Fields = Fields
> {
  readonly method: Method
  readonly path: P
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** Status of a success: 200 unless the contract says 201 or 202. */
  readonly status: 200 | 201 | 202
}

// biome-ignore lint/suspicious/noExplicitAny: the input of any operation, which only `any` admits because inputs are contravariant
type Any = any

/** The input of an operation: path, query and body fields together. Of a route with any fields, any input. */
export type Input<Rt extends Route> = 0 extends 1 & Rt["params"] ? Any : Schema.Struct.Type<Rt["params"] & Rt["query"] & Rt["body"]>

/** A route as an author writes it: fields that it does not have are left out. */
export type RouteOptions = Pick<Route, "method" | "path"> & Partial<Route>

/** The route that is made of an author's. */
export type RouteOf<O extends RouteOptions> = Route<O["method"], O["path"], Given<O, "params">, Given<O, "query">, Given<O, "body">>
type Given<O, Part extends string> = O extends { readonly [_ in Part]: infer F extends Fields } ? F : {}

/** What a caller showed: an API key, or a session, which has no `keyId`. */
export interface Credential {
  readonly keyId?: string
  readonly scopes: ReadonlyArray<Scope>
  /** When it ends, milliseconds since 1970; null if it never does. A session's end does not bound what it lets others do. */
  readonly expiresAt: Timestamp | null
}

/** The account and request of a call, before credits are held. */
export interface Requester {
  readonly accountId: string
  readonly requestId: string
  /** What the caller may do, which bounds what it may let others do. Absent where the host itself calls. */
  readonly credential?: Credential
  /** Seconds that the caller would wait for a better answer. Only an operation that `waits` heeds it. */
  readonly wait?: number
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

export interface Contract<Key extends string, Rt extends Route, Success extends Schema.Top, E, R> {
  /** Names the operation in events, the price plan and the catalog. Never changes. */
  readonly key: Key
  readonly summary: string
  /** A longer description for developers, in Markdown. */
  readonly description?: string
  readonly route: Rt
  /**
   * Credits for each unit, with at most three decimals; 0 for an operation that is free and leaves no event in the ledger. A host publishes it
   * when it starts; an operator may publish another. Without one, the operation cannot be called until a price is published.
   */
  readonly price?: number
  /** The unit of the price plan in one word: `call` by default, or for example `address`. */
  readonly unit: string
  /** The units to hold credits for: a whole number of at least 0. */
  readonly quantity: (input: Input<Rt>) => number
  readonly success: Success
  /** Checks ownership and existence before credits are held. A failure writes nothing. */
  readonly check: (input: Input<Rt>, requester: Requester) => Effect.Effect<void, E, R>
  /** The operation calls no upstream, so it has no circuit breaker. */
  readonly local?: true
  /** The time limit of the work. A hold expires at least thirty seconds later. */
  readonly timeout: Duration.Input
  /** Fields of input or data that are never echoed, logged or written in clear. */
  readonly secret: ReadonlyArray<string>
  /** Fails if this host has no provider for the operation. The catalog shows it. */
  readonly configured: Effect.Effect<void, UpstreamNotConfigured, R>
  /** An example call and its reply, for the documentation. */
  readonly example?: { readonly input: Input<Rt>; readonly data: Success["Type"] }
  /** Operations that take this one's reply as input. */
  readonly links?: ReadonlyArray<Link>
}

/** The options of a contract. By default the unit is `call` and the quantity 1, nothing is checked, and nothing is secret. */
export interface Options<O extends RouteOptions, Success extends Schema.Top, ECheck, RCheck, RConfigured>
  extends Pick<Contract<string, RouteOf<O>, Success, ECheck, RCheck>, "summary" | "description" | "price" | "success" | "local" | "links">,
    Partial<Pick<Contract<string, RouteOf<O>, Success, ECheck, RCheck>, "check" | "unit" | "quantity" | "secret" | "timeout">> {
  readonly route: O
  readonly configured?: Effect.Effect<void, UpstreamNotConfigured, RConfigured>
  readonly example?: NoInfer<{ readonly input: Input<RouteOf<O>>; readonly data: Success["Type"] }>
}

/** Makes a contract, with the defaults of the options that are left out. `timeout` is the default time limit. */
export const make = <const Key extends string, const O extends RouteOptions, Success extends Schema.Top, E, RCheck, RConfigured>(
  key: Key,
  options: Options<O, Success, E, RCheck, RConfigured>,
  timeout: Duration.Input
): Contract<Key, RouteOf<O>, Success, E, RCheck | RConfigured> => ({
  key,
  summary: options.summary,
  ...(options.description === undefined ? {} : { description: options.description }),
  route: routeOf(key, options.route),
  ...("price" in options ? { price: pricedAt(key, options.price) } : {}),
  unit: options.unit ?? "call",
  quantity: options.quantity ?? (() => 1),
  success: options.success,
  check: options.check ?? (() => Effect.void),
  ...(options.local === undefined ? {} : { local: options.local }),
  timeout: options.timeout ?? timeout,
  secret: options.secret ?? [],
  configured: options.configured ?? Effect.void,
  ...(options.example === undefined ? {} : { example: options.example }),
  ...(options.links === undefined ? {} : { links: options.links })
})

/** Throws a sentence where a price is no amount of credits. */
const pricedAt = (key: string, price: unknown): number => {
  if (typeof price === "number" && Credits.parse(String(price)) !== undefined) return price
  throw new TypeError(
    `The price of "${key}" is ${typeof price === "string" ? JSON.stringify(price) : String(price)}: give credits for each unit, a number of at least 0 with at most three decimals`
  )
}

const routeOf = <O extends RouteOptions>(
  key: string,
  { method, path, params = {}, query = {}, body = {}, status = 200 }: O
): RouteOf<O> => {
  assertParameters(key, path, Object.keys(params))
  // TypeScript does not know that `{}` stands only where the author's route has no fields
  return { method, path, params, query, body, status } as RouteOf<O>
}

/** Throws a sentence where the path has a parameter without a schema, or the reverse. */
const assertParameters = (key: string, path: string, fields: ReadonlyArray<string>): void => {
  const names = [...path.matchAll(/:(\w+)/gu)].map(([, name = ""]) => name)
  const [name] = names.filter((name) => !fields.includes(name))
  if (name !== undefined) throw new TypeError(`The path of "${key}" has :${name}, and its params have no field ${name}`)
  const [field] = fields.filter((field) => !names.includes(field))
  if (field !== undefined) throw new TypeError(`The params of "${key}" have a field ${field}, and its path has no :${field}`)
}

/** The schema of an operation's whole input: path, query and body fields together. */
export const inputOf = <Rt extends Route>({ params, query, body }: Rt): Schema.Codec<Input<Rt>, unknown> =>
  // TypeScript cannot infer this type while the fields are type parameters
  Schema.Struct({ ...params, ...query, ...body }) as unknown as Schema.Codec<Input<Rt>, unknown>
