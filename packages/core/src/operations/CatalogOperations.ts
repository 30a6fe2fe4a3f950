/** Operations that read the catalog: what can be called, its price and its availability. They need no API key. */
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect, Option, Schema, Struct } from "effect"
import { MailRelay } from "../accounts/MailRelay.ts"
import { RateLimit } from "../billing/RateLimit.ts"
import * as Credits from "../Credits.ts"
import * as Money from "../Money.ts"
import { Checkout } from "../payments/Checkout.ts"
import { Subscriptions } from "../payments/Subscriptions.ts"
import * as Operation from "../work/Operation.ts"
import { NotFound, UpstreamUnavailable } from "../work/OperationError.ts"
import { Availability, Capability, Catalog, CatalogEntry, CatalogGroup } from "./Catalog.ts"
import { COMMON_LIMITS, CommonLimits } from "./CommonLimits.ts"

/** Reads from the catalog. `UpstreamUnavailable` if the prices cannot be read now. */
const reading = <A>(read: (catalog: Catalog["Service"]) => Effect.Effect<A, Aggregate.Failure>) =>
  Effect.mapError(Catalog.use(read), ({ _tag }) => new UpstreamUnavailable({ upstream: "catalog", reason: _tag }))

const AVAILABLE: Availability = { available: true, reason: null, retry_after: null }
const NOTHING = { type: "object", properties: {} }
const BOUNDS = {
  type: "object",
  properties: { bin: { type: "string", pattern: "^[0-9]{6,8}$" } },
  required: ["bin"],
  additionalProperties: true
}
const EXAMPLE: CatalogEntry = {
  key: "bin.lookup",
  name: "bin lookup",
  summary: "Look up the scheme and issuer of a card number prefix",
  price: { credits: Credits.of(500), unit: "call", version: 1 },
  availability: AVAILABLE,
  group: "lookups",
  method: "GET",
  path: "/bin/{bin}",
  bounds: { params: BOUNDS, query: { ...NOTHING, additionalProperties: true }, body: { ...NOTHING, additionalProperties: false } }
}

export const read = Operation.make("catalog.read", {
  summary: "List every operation with its price, bounds and availability",
  price: 0,
  route: { method: "GET", path: "/catalog" },
  success: Schema.Struct({ operations: Schema.Array(CatalogEntry) }),
  local: true,
  run: Effect.fnUntraced(function* () {
    return { data: { operations: yield* reading(({ entries }) => entries) } }
  }),
  example: { input: {}, data: { operations: [EXAMPLE] } }
})

const { key, name, summary, group, availability } = CatalogEntry.fields

export const CapabilityListed = Schema.Struct({ key, name, summary, group, availability })

const listed = ({ key, name, summary, group, availability }: CatalogEntry) => ({ key, name, summary, group, availability })

export const capabilities = Operation.make("catalog.capabilities", {
  summary: "List the operations and whether each is available now",
  price: 0,
  route: { method: "GET", path: "/catalog/capabilities" },
  success: Schema.Struct({ capabilities: Schema.Array(CapabilityListed) }),
  local: true,
  run: Effect.fnUntraced(function* () {
    const entries = yield* reading(({ entries }) => entries)
    return { data: { capabilities: entries.map(listed) } }
  }),
  example: {
    input: {},
    data: {
      capabilities: [
        listed(EXAMPLE),
        {
          key: "grammar.check",
          name: "grammar check",
          summary: "Check the grammar and spelling of a text",
          group: "lookups",
          availability: { available: false, reason: "It is temporarily unavailable.", retry_after: 8 }
        }
      ]
    }
  },
  links: [{ operation: "catalog.capability", parameters: { key: "/capabilities/0/key" } }]
})

export const capability = Operation.make("catalog.capability", {
  summary: "Read the details of one operation",
  price: 0,
  route: {
    method: "GET",
    path: "/catalog/capabilities/:key",
    params: { key: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(100)) }
  },
  success: Capability,
  local: true,
  run: Effect.fnUntraced(function* ({ key }) {
    const found = yield* reading((catalog) => catalog.capability(key))
    if (found === undefined) return yield* new NotFound({ resource: "capability" })
    return { data: found }
  }),
  example: {
    input: { key: "bin.lookup" },
    data: {
      ...EXAMPLE,
      description: null,
      output: { type: "object", properties: { bin: { type: "string" }, scheme: { type: "string" } }, required: ["bin", "scheme"] },
      example: { input: { bin: "45717360" }, data: { bin: "45717360", scheme: "visa" } }
    }
  }
})

export const groups = Operation.make("catalog.groups", {
  summary: "List the groups of operations, and whether they are available",
  price: 0,
  route: { method: "GET", path: "/catalog/groups" },
  success: Schema.Struct({ groups: Schema.Array(CatalogGroup) }),
  local: true,
  run: Effect.fnUntraced(function* () {
    return { data: { groups: yield* reading(({ groups }) => groups) } }
  }),
  example: {
    input: {},
    data: {
      groups: [
        {
          key: "lookups",
          name: "lookups",
          summary: "Questions with an answer.",
          availability: AVAILABLE,
          operations: [Struct.pick(EXAMPLE, ["key", "name", "summary", "price", "availability"])]
        }
      ]
    }
  }
})

/** The host's configuration for a client without an account. */
export const Config = Schema.Struct({
  credit: Schema.Struct({
    /** What one is worth in US dollars; null where its value is in another currency. */
    usd: Schema.NullOr(Schema.Finite),
    /** What one is worth, in decimal digits. */
    value: Schema.String,
    /** ISO 4217. */
    currency: Schema.String,
    /** The names of one and of several. */
    one: Schema.String,
    several: Schema.String,
    /** The most decimals of an amount of credits. */
    decimals: Schema.Int
  }),
  /** Credits granted to an account when it is verified. */
  registration: Schema.Struct({ credits: Credits.CreditsFromDecimal }),
  /** The rate limit of an account, and of a client without a key. */
  rate_limit: Schema.Struct({
    calls: Schema.Int,
    /** Seconds. */
    window: Schema.Finite
  }),
  /** What people can do here without a program, and what the host lacks for it. */
  offers: Schema.Struct({
    /** Signing up, and signing in by a link that is mailed. */
    sign_up: Availability,
    /** Buying credits. */
    payments: Availability,
    /** Subscribing to a plan. */
    plans: Availability
  }),
  ...CommonLimits.fields
})

const creditIn = ({ credit, credits, currency, value }: Money.Money) => ({
  usd: currency === "USD" ? Number(value) : null,
  value,
  currency,
  one: credit,
  several: credits,
  decimals: 3
})

const lacking = (reason: string): Availability => ({ available: false, reason, retry_after: null })

const NO_RELAY = lacking("No mail relay is set up at this host. Links by mail need one, and a public URL that they lead to.")
const NO_GATEWAY = lacking("No gateway for payments is set up at this host.")
const NO_PLANS = lacking("No plans are set up at this host.")

/** Whether mail is sent. A host that serves no sign-ups has no relay. */
const mails = Effect.flatMap(
  Effect.serviceOption(MailRelay),
  Option.match({
    onNone: () => Effect.succeed(false),
    onSome: ({ configured }) => Effect.match(configured, { onSuccess: () => true, onFailure: () => false })
  })
)

const offered = Effect.gen(function* () {
  const { gateway } = yield* Checkout
  const { plans } = yield* Subscriptions
  const payments = gateway === null ? NO_GATEWAY : AVAILABLE
  return {
    sign_up: (yield* mails) ? AVAILABLE : NO_RELAY,
    payments,
    plans: plans.length === 0 ? NO_PLANS : payments
  }
})

export const config = Operation.make("catalog.config", {
  summary: "Read the value of a credit, the credits of new accounts, limits, and what the host offers",
  price: 0,
  route: { method: "GET", path: "/catalog/config" },
  success: Config,
  local: true,
  run: Effect.fnUntraced(function* () {
    const { signUpCredits } = yield* Catalog
    const { policy } = yield* RateLimit
    return {
      data: {
        ...COMMON_LIMITS,
        credit: creditIn(yield* Money.Current),
        registration: { credits: signUpCredits },
        rate_limit: { calls: policy.limit, window: policy.window },
        offers: yield* offered
      }
    }
  }),
  example: {
    input: {},
    data: {
      ...COMMON_LIMITS,
      credit: creditIn(Money.STANDARD),
      registration: { credits: Credits.of(200_000) },
      rate_limit: { calls: 60, window: 60 },
      offers: { sign_up: AVAILABLE, payments: AVAILABLE, plans: NO_PLANS }
    }
  }
})
