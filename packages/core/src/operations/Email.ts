/** Validation of e-mail addresses: whether mail can be sent there, and how far that can be trusted. Nothing is sent, and no mail server is asked. */
import { Array, Context, Effect, Result, Schema, Struct } from "effect"
import * as Operation from "../work/Operation.ts"
import type { UpstreamUnavailable } from "../work/OperationError.ts"

export const EmailReport = Schema.Struct({
  /** As it was given. */
  email: Schema.String,
  /** Whether mail can be sent there: the syntax is right, and the domain takes mail. So the score is above 0. Disposable addresses are valid, too. */
  valid: Schema.Boolean,
  /** Whether the domain, or one above it, is listed as a service of throw-away addresses. Relays that hide a lasting address are none. */
  disposable: Schema.Boolean,
  /** What follows the last `@`, in lower case, and with valid syntax as DNS has it (`xn--...`). Empty where there is no `@`. */
  domain: Schema.String,
  /** RFC 5321 and 6531, at a name of at least two labels: not at an IP address, and without control characters. */
  syntax_valid: Schema.Boolean,
  /** Whether the domain names hosts that take its mail. A null MX (RFC 7505) says that there are none. */
  mx_records: Schema.Boolean,
  /**
   * From 0 to 1: 0.9 where mail goes to MX hosts, 0.5 where there is but the address of the domain itself, 0 where neither is there or the
   * domain does not exist. Less 0.15 for the address of a role (`info@`, `sales@`). Less 0.1 where the domain's DNS is not in health: its
   * name servers answer, but tell of NS without SOA or of SOA without NS, while every zone has both. At most 0.1 for a disposable address.
   */
  score: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
})
export type EmailReport = typeof EmailReport.Type

export const EmailBatch = Schema.Struct({
  /** How many addresses were given. */
  total: Schema.Int,
  /** In the order of the addresses, also where one is given twice. */
  results: Schema.Array(EmailReport.mapFields(Struct.pick(["email", "valid", "disposable", "score"]))),
  /** Addresses of domains that could not be asked about: nothing is said of them, and they cost nothing. */
  unchecked: Schema.Array(Schema.String)
})

/**
 * `UpstreamUnavailable` where name servers failed, refused, or did not answer in time: that is no verdict on an address. `consensus` asks
 * all engines that know disposable addresses, not the first alone; one that says so is enough.
 */
export class EmailValidator extends Context.Service<
  EmailValidator,
  {
    readonly validate: (request: { readonly email: string; readonly consensus: boolean }) => Effect.Effect<EmailReport, UpstreamUnavailable>
    /** A report on each, or why there is none, in order. What DNS says of a domain is asked once for all of its addresses. */
    readonly validateAll: (request: {
      readonly emails: ReadonlyArray<string>
      readonly consensus: boolean
    }) => Effect.Effect<ReadonlyArray<Result.Result<EmailReport, UpstreamUnavailable>>>
  }
>()("@millrace/core/operations/Email/EmailValidator") {}

/** What is looked into, not what is valid: an address that is none is answered, not refused. */
export const Address = Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(255))

export const validate = Operation.make("email.validate", {
  summary: "Validate an e-mail address",
  description:
    "Checks syntax, MX records, lists of disposable domains and the health of the domain's DNS. `valid` says that mail can be sent there: " +
    "the syntax is right and the domain takes mail. `score` is 0.9 with MX records, 0.5 with an A or AAAA record only, else 0; less 0.15 " +
    "for the address of a role (`info@`), less 0.1 where the zone has NS without SOA or SOA without NS, and at most 0.1 for a disposable address. " +
    "`consensus` asks a second list of disposable domains; one that knows the domain is enough. Where name servers do not answer, " +
    "nothing is said, and nothing is charged.",
  route: {
    method: "POST",
    path: "/email/validate",
    body: {
      email: Address,
      /** Asks a second engine, too. */
      consensus: Schema.optionalKey(Schema.Boolean)
    }
  },
  success: EmailReport,
  run: Effect.fnUntraced(function* ({ email, consensus = false }) {
    const validator = yield* EmailValidator
    return { data: yield* validator.validate({ email, consensus }) }
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

export const validateBatch = Operation.make("email.validateBatch", {
  summary: "Validate up to 50 e-mail addresses at once",
  description:
    "As for one address, without `consensus`. Each address counts, also where it is given twice. Addresses of domains whose name servers " +
    "do not answer are in `unchecked`, and cost nothing; where that is true of all, the call fails.",
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
    const reports = yield* validator.validateAll({ emails, consensus: false })
    const results = Array.getSuccesses(reports)
    const [failure] = Array.getFailures(reports)
    if (failure !== undefined && results.length === 0) return yield* failure
    const unchecked = Array.zip(emails, reports).flatMap(([email, report]) => (Result.isFailure(report) ? email : []))
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
