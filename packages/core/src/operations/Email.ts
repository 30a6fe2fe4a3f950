/** Operations that validate e-mail addresses: whether mail can be delivered, with a score. They send no mail and contact no mail server. */
import { Array, Context, Effect, type Result, Schema, Struct } from "effect"
import * as Operation from "../work/Operation.ts"
import type { UpstreamUnavailable } from "../work/OperationError.ts"

export const EmailReport = Schema.Struct({
  /** The address as the caller wrote it. */
  email: Schema.String,
  /**
   * Whether mail can be delivered: the syntax is valid and the domain accepts mail. The score is then above 0. Disposable addresses can be
   * valid.
   */
  valid: Schema.Boolean,
  /** Whether the domain or a parent domain is listed as a disposable-address service. Relays of permanent addresses do not count. */
  disposable: Schema.Boolean,
  /** The part after the last `@` in lower case, in its DNS form (`xn--...`) if the syntax is valid. Empty without an `@`. */
  domain: Schema.String,
  /** RFC 5321 and 6531, for a domain of at least two labels: no IP addresses, no control characters. */
  syntax_valid: Schema.Boolean,
  /** Whether the domain has MX records that name hosts. A null MX (RFC 7505) names none. */
  mx_records: Schema.Boolean,
  /**
   * From 0 to 1: 0.9 with MX hosts, 0.5 with an address record only, 0 with neither or if the domain does not exist. Less 0.15 for a role
   * address (`info@`, `sales@`). Less 0.1 if the zone is unhealthy: it has NS without SOA, or SOA without NS. At most 0.1 for a disposable
   * address.
   */
  score: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
})
export type EmailReport = typeof EmailReport.Type

export const EmailBatch = Schema.Struct({
  /** The number of addresses in the request. */
  total: Schema.Int,
  /** Results in the order of the addresses. A repeated address has a result each time. */
  results: Schema.Array(EmailReport.mapFields(Struct.pick(["email", "valid", "disposable", "score"]))),
  /** Addresses whose domain could not be queried. They have no result and are free. */
  unchecked: Schema.Array(Schema.String)
})

/**
 * Validates addresses. `UpstreamUnavailable` if name servers failed, refused or timed out, which says nothing about an address. With
 * `consensus`, an address is disposable if any list says so, not only the first.
 */
export class EmailValidator extends Context.Service<
  EmailValidator,
  {
    readonly validate: (request: { readonly email: string; readonly consensus: boolean }) => Effect.Effect<EmailReport, UpstreamUnavailable>
    /** A report or an error for each address, in order. DNS is queried once for all addresses of a domain. */
    readonly validateAll: (request: {
      readonly emails: ReadonlyArray<string>
      readonly consensus: boolean
    }) => Effect.Effect<ReadonlyArray<Result.Result<EmailReport, UpstreamUnavailable>>>
  }
>()("@millrace/core/operations/Email/EmailValidator") {}

/** Any text: an invalid address gets a report, not an error. */
export const Address = Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(255))

export const validate = Operation.make("email.validate", {
  summary: "Validate an e-mail address",
  price: 1,
  description:
    "Checks the syntax, the MX records, lists of disposable domains and the health of the domain's DNS. `valid` is true if mail can " +
    "be sent to the address: its syntax is valid and its domain accepts mail. `score` is 0.9 with MX records, 0.5 with an A or AAAA " +
    "record only, and otherwise 0. It is 0.15 less for a role address (`info@`), 0.1 less if the zone has NS without SOA or SOA " +
    "without NS, and at most 0.1 for a disposable address. `consensus` uses a second list of disposable domains; either list is " +
    "enough. If name servers do not answer, the call fails and is free.",
  route: {
    method: "POST",
    path: "/email/validate",
    body: {
      email: Address,
      /** Uses a second list of disposable domains. */
      consensus: Schema.optionalKey(Schema.Boolean)
    }
  },
  success: EmailReport,
  run: Effect.fnUntraced(function* ({ email, consensus = false }) {
    return { data: yield* EmailValidator.use((validator) => validator.validate({ email, consensus })) }
  }),
  example: {
    input: { email: "grace.hopper@example.com", consensus: true },
    data: {
      email: "grace.hopper@example.com",
      valid: true,
      disposable: false,
      domain: "example.com",
      syntax_valid: true,
      mx_records: true,
      score: 0.9
    }
  }
})

/** The reports on addresses, the failures, and the addresses without a report. */
export const sorted = (emails: ReadonlyArray<string>, reports: ReadonlyArray<Result.Result<EmailReport, UpstreamUnavailable>>) => {
  const [results, failures] = Array.separate(reports)
  return { failures, results, unchecked: emails.filter((_, i) => reports[i]?._tag === "Failure") }
}

export const validateBatch = Operation.make("email.validateBatch", {
  summary: "Validate up to 50 e-mail addresses at once",
  price: 0.6,
  description:
    "Validates each address as for one address, without `consensus`. Each address is charged, also if it is repeated. Addresses of " +
    "domains whose name servers do not answer are listed in `unchecked` and are free. If that is true of all addresses, the call " +
    "fails.",
  route: {
    method: "POST",
    path: "/email/validate-batch",
    body: { emails: Schema.Array(Address).check(Schema.isMinLength(1), Schema.isMaxLength(50)) }
  },
  success: EmailBatch,
  quantity: ({ emails }) => emails.length,
  unit: "address",
  run: Effect.fnUntraced(function* ({ emails }) {
    const validator = yield* EmailValidator
    const { failures, results, unchecked } = sorted(emails, yield* validator.validateAll({ emails, consensus: false }))
    const [failure] = failures
    if (failure !== undefined && results.length === 0) return yield* failure
    return {
      data: { total: emails.length, results: results.map(Struct.pick(["email", "valid", "disposable", "score"])), unchecked },
      quantity: results.length
    }
  }),
  example: {
    input: { emails: ["grace.hopper@example.com", "info@example.com", "nobody@nowhere.invalid", "ada@broken.example.com"] },
    data: {
      total: 4,
      results: [
        { email: "grace.hopper@example.com", valid: true, disposable: false, score: 0.9 },
        { email: "info@example.com", valid: true, disposable: false, score: 0.75 },
        { email: "nobody@nowhere.invalid", valid: false, disposable: false, score: 0 }
      ],
      unchecked: ["ada@broken.example.com"]
    }
  }
})
