/**
 * The catalog of this host's operations, as a list and by groups. It derives from the list of operations. Constant parts are computed once;
 * prices and availability are read at each call.
 */
import type { Aggregate } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SIGNUP_CREDITS } from "../accounts/Registration.ts"
import { inForce, PriceBook, type PriceList } from "../billing/PricePlan.ts"
import * as Credits from "../Credits.ts"
import { CircuitBreaker } from "../work/CircuitBreaker.ts"
import type * as Operation from "../work/Operation.ts"
import { upstreamOf } from "../work/Perform.ts"

// the entries

/** The price in force now. */
export const Price = Schema.Struct({
  /** Credits for a unit. */
  credits: Credits.CreditsFromDecimal,
  /** The unit: a call, or for example an address. */
  unit: Schema.String,
  /** Version of the price plan. */
  version: Schema.Int
})

export const Availability = Schema.Struct({
  available: Schema.Boolean,
  /** Why it is unavailable; null while it is available. */
  reason: Schema.NullOr(Schema.String),
  /** Seconds after which it may be available; null if unknown. */
  retry_after: Schema.NullOr(Schema.Int)
})
export type Availability = typeof Availability.Type

/** An operation's name, price and availability. */
export const Summary = Schema.Struct({
  key: Schema.String,
  /** The key as words. */
  name: Schema.String,
  summary: Schema.String,
  /** Null without a published price: the operation then cannot be called. */
  price: Schema.NullOr(Price),
  availability: Availability
})
export type Summary = typeof Summary.Type

/** An operation in the catalog's list. */
export const CatalogEntry = Schema.Struct({
  ...Summary.fields,
  /** Key of its group. */
  group: Schema.String,
  method: Schema.String,
  /** Relative to the root of the API, with parameters in braces. */
  path: Schema.String,
  /** JSON Schemas of its input: path, query and body. */
  bounds: Schema.Struct({ params: Schema.JsonObject, query: Schema.JsonObject, body: Schema.JsonObject })
})
export type CatalogEntry = typeof CatalogEntry.Type

/** An operation with all details. */
export const Capability = Schema.Struct({
  ...CatalogEntry.fields,
  /** Markdown. */
  description: Schema.NullOr(Schema.String),
  /** JSON Schema of its output. */
  output: Schema.JsonObject,
  example: Schema.NullOr(Schema.Struct({ input: Schema.JsonObject, data: Schema.Json }))
})
export type Capability = typeof Capability.Type

/** A group of operations. */
export const CatalogGroup = Schema.Struct({
  key: Schema.String,
  name: Schema.String,
  summary: Schema.NullOr(Schema.String),
  /** Available if one of its operations is available. */
  availability: Availability,
  operations: Schema.Array(Summary)
})
export type CatalogGroup = typeof CatalogGroup.Type

// the service

/** Operations by the name of their group. An operation without a group is in that of its area: `dns.resolve` is in `dns`. */
export type Groups = Readonly<
  Record<string, { readonly operations: ReadonlyArray<{ readonly key: string }>; readonly description?: string | undefined }>
>

export interface CatalogOptions {
  readonly groups?: Groups
  /** Credits granted to an account when it is verified. */
  readonly signUpCredits?: Credits.Credits
}

const make = Effect.fnUntraced(function* (
  operations: ReadonlyArray<Operation.Any>,
  { groups = {}, signUpCredits = SIGNUP_CREDITS }: CatalogOptions,
  // biome-ignore lint/suspicious/noExplicitAny: the services of all operations
  services: Context.Context<any>
) {
  const prices = yield* PriceBook
  const breaker = yield* CircuitBreaker
  const clock = yield* Clock.Clock
  const grouped = groupAll(operations, groups)
  // Now, so that a wrong example stops the start and not a reader
  for (const operation of operations) exampleOf(operation)
  const byGroup = Map.groupBy(grouped.values(), ({ group }) => group)

  const availability = Effect.fnUntraced(function* (operation: Operation.Any, price: unknown) {
    const configured: Effect.Effect<string | undefined> = Effect.match(Effect.provideContext(operation.configured, services), {
      onSuccess: () => undefined,
      onFailure: ({ upstream }) => String(upstream)
    })
    const missing = yield* configured
    if (missing !== undefined) return unavailable(`No provider for ${missing} is set up at this host.`)
    if (price === null) return unavailable("It has no price yet.")
    const openFor = yield* breaker.openFor(upstreamOf(operation.key))
    return openFor === 0 ? AVAILABLE : unavailable("It is temporarily unavailable.", Math.ceil(openFor / 1_000))
  })

  const entryOf = ({ operation, group }: Grouped, list: PriceList | undefined): Effect.Effect<CatalogEntry> => {
    const credits = list?.prices[operation.key]
    const price = list === undefined || credits === undefined ? null : { credits, unit: operation.unit, version: list.version }
    return Effect.map(availability(operation, price), (availability) => ({ ...described(operation).entry, group, price, availability }))
  }

  const list = Effect.map(prices.plan, (plan) => inForce(plan, clock.currentTimeMillisUnsafe()))
  const entriesOf = (operations: ReadonlyArray<Grouped>, list: PriceList | undefined) =>
    Effect.forEach(operations, (operation) => entryOf(operation, list))
  const inHostsOrder = operations.flatMap(({ key }) => grouped.get(key) ?? [])
  return {
    /** Credits granted to an account when it is verified. */
    signUpCredits,
    /** Every operation once, in the host's order. */
    entries: Effect.flatMap(list, (list) => entriesOf(inHostsOrder, list)),
    /** An operation with all details; undefined for an unknown key. */
    capability: (key: string): Effect.Effect<Capability | undefined, Aggregate.Failure> => {
      const found = grouped.get(key)
      if (found === undefined) return Effect.undefined
      return Effect.flatMap(list, (list) =>
        Effect.map(entryOf(found, list), (entry) => ({ ...entry, ...described(found.operation).details }))
      )
    },
    /** Every operation once, in the order of the groups. */
    groups: Effect.flatMap(list, (list) =>
      Effect.forEach(byGroup, ([group, operations]) =>
        Effect.map(entriesOf(operations, list), (entries) => groupOf(group, groups[group]?.description, entries))
      )
    )
  }
})

export class Catalog extends Context.Service<Catalog, Effect.Success<ReturnType<typeof make>>>()("@millrace/core/operations/Catalog") {
  /**
   * Two operations with one key are a defect. So is a group that names an unknown operation or one of another group, and an example that the
   * schemas of its operation refuse.
   */
  static readonly layer = <Op extends Operation.Any>(
    operations: ReadonlyArray<Op>,
    options: CatalogOptions = {}
    // The operations of the catalog itself need no upstream
  ): Layer.Layer<Catalog, never, PriceBook | CircuitBreaker | Exclude<Operation.Services<Op>, Catalog>> =>
    Layer.effect(
      this,
      Effect.flatMap(Effect.context<Exclude<Operation.Services<Op>, Catalog>>(), (services) => make(operations, options, services))
    )
}

const groupOf = (key: string, description: string | undefined, entries: ReadonlyArray<CatalogEntry>): CatalogGroup => ({
  key,
  name: wordsOf(key),
  summary: description ?? null,
  availability: availabilityOf(entries),
  operations: entries.map(({ key, name, summary, price, availability }) => ({ key, name, summary, price, availability }))
})

// availability

const AVAILABLE: Availability = { available: true, reason: null, retry_after: null }
const unavailable = (reason: string, retryAfter: number | null = null): Availability => ({
  available: false,
  reason,
  retry_after: retryAfter
})

/** The availability of a group: that of its operation with the shortest wait. */
const availabilityOf = (operations: ReadonlyArray<CatalogEntry>): Availability =>
  operations.map(({ availability }) => availability).reduce((first, next) => (waitFor(next) < waitFor(first) ? next : first))

const waitFor = ({ available, retry_after }: Availability): number => (available ? 0 : (retry_after ?? Number.POSITIVE_INFINITY))

// groups

/** An operation and its group. */
interface Grouped {
  readonly operation: Operation.Any
  readonly group: string
}

/** The operations by key, in the order of the groups. */
const groupAll = (operations: ReadonlyArray<Operation.Any>, groups: Groups): ReadonlyMap<string, Grouped> => {
  const left = new Map(operations.map((operation) => [operation.key, operation]))
  if (left.size < operations.length) throw new Error("Two operations have the same key")
  const grouped = new Map<string, Grouped>()
  const join = (group: string, key: string) => {
    const operation = left.get(key)
    if (operation === undefined) throw new Error(`Group ${group} names ${key}, which is in another or is no operation here`)
    left.delete(key)
    grouped.set(key, { operation, group })
  }
  for (const [group, { operations }] of Object.entries(groups)) for (const { key } of operations) join(group, key)
  for (const key of [...left.keys()]) join(upstreamOf(key), key)
  return grouped
}

// constant parts

/** The constant parts of an operation's catalog entry, in any group. */
interface Described {
  readonly entry: Omit<CatalogEntry, "group" | "price" | "availability">
  readonly details: Omit<Capability, keyof CatalogEntry>
}

const descriptions = new WeakMap<Operation.Any, Described>()

/**
 * An operation never changes, so a process makes its JSON Schemas once for all of its hosts, and only when somebody reads the catalog: so hosts
 * start sooner.
 */
const described = (operation: Operation.Any): Described => {
  const known = descriptions.get(operation)
  if (known !== undefined) return known
  const made = describe(operation)
  descriptions.set(operation, made)
  return made
}

const describe = (operation: Operation.Any): Described => {
  const { key, summary, description = null, route, success } = operation
  return {
    entry: {
      key,
      name: wordsOf(key),
      summary,
      method: route.method,
      path: route.path.replaceAll(/:(?<name>\w+)/gu, "{$<name>}"),
      bounds: { params: boundsOf(route.params, "ignore"), query: boundsOf(route.query, "ignore"), body: boundsOf(route.body, "error") }
    },
    details: { description, output: schemaOf(success), example: exampleOf(operation) }
  }
}

/** `email.validateBatch` becomes `email validate batch`. */
const wordsOf = (key: string): string => key.replaceAll(/\.|(?<=[a-z0-9])(?=[A-Z])/gu, " ").toLowerCase()

const jsonObject = Schema.decodeUnknownSync(Schema.JsonObject)

/** `excess`: whether unknown fields are ignored or refused. */
const boundsOf = (fields: Schema.Struct.Fields, excess: "ignore" | "error"): Schema.JsonObject => {
  // Effect's JSON Schema of a struct without fields accepts any value
  if (Object.keys(fields).length === 0) return { type: "object", properties: {}, additionalProperties: excess === "ignore" }
  return schemaOf(Schema.Struct(fields), { onExcessProperty: excess })
}

/** The JSON Schema of the encoded form; references point to its own `$defs`. */
const schemaOf = (of: Schema.Top, options?: Schema.ToJsonSchemaOptions): Schema.JsonObject => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(of, options)
  return jsonObject(Object.keys(definitions).length === 0 ? schema : { ...schema, $defs: definitions })
}

type Example = NonNullable<Capability["example"]>

/** By the example as it was declared, which copies of an operation share. */
const examples = new WeakMap<NonNullable<Operation.Any["example"]>, { readonly of: Operation.Any; readonly encoded: Example }>()

const exampleOf = (operation: Operation.Any): Example | null => {
  const { example, route, secret, success } = operation
  if (example === undefined) return null
  const known = examples.get(example)
  if (known?.of.route === route && known.of.secret === secret && known.of.success === success) return known.encoded
  const encoded = encodedExample(operation, example)
  examples.set(example, { of: operation, encoded })
  return encoded
}

const encodedExample = ({ route, secret, success }: Operation.Any, example: NonNullable<Operation.Any["example"]>): Example => {
  const fields: Readonly<Record<string, Schema.Codec<unknown, unknown>>> = { ...route.params, ...route.query, ...route.body }
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(Schema.Struct(fields)))
  const input = Object.entries(jsonObject(encode(example.input)))
  return {
    input: Object.fromEntries(input.map(([name, value]) => [name, secret.includes(name) ? "***" : value])),
    data: Schema.encodeUnknownSync(Schema.toCodecJson(success))(example.data)
  }
}
