/**
 * The errors of an operation. The hold of a failed call is released in full. An error of `check` comes before the hold and writes nothing.
 */
import { Schema } from "effect"

/** The input is well-formed, but the operation cannot process it. `message` names the field and the values that it accepts. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>()("InvalidInput", {
  field: Schema.String,
  message: Schema.String
}) {}

/** The resource does not exist, or belongs to another account. `resource` is a word such as `bin` or `domain`. */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { resource: Schema.String }) {
  override get message(): string {
    return `There is no such ${this.resource}, or it belongs to another account`
  }
}

/** The upstream failed, refused, timed out, or sent an invalid response. */
export class UpstreamUnavailable extends Schema.TaggedError<UpstreamUnavailable>()("UpstreamUnavailable", {
  upstream: Schema.String,
  /** For operators. It may name hosts and causes, so it is never shown to a caller. */
  reason: Schema.String,
  /**
   * The failure concerns this request only, such as a third party's server that does not answer. It does not count for the circuit:
   * otherwise one caller could open the circuit for all with five requests that fail.
   */
  isolated: Schema.optionalKey(Schema.Boolean),
  /** Seconds after which the upstream may answer again, where it said so. */
  retryAfter: Schema.optionalKey(Schema.Int),
  /** The upstream answered, but not in the form that its interface promises. */
  invalidReply: Schema.optionalKey(Schema.Boolean)
}) {
  override get message(): string {
    return `The service behind ${this.upstream} failed: ${this.reason}`
  }
}

/** This host has no provider for the operation. */
export class UpstreamNotConfigured extends Schema.TaggedError<UpstreamNotConfigured>()("UpstreamNotConfigured", {
  upstream: Schema.String
}) {
  override get message(): string {
    return `No provider for ${this.upstream} is configured at this host`
  }
}

/** The account, or the host, has too many open jobs. Nothing was held. `retryAfter` in seconds. */
export class TooManyJobs extends Schema.TaggedError<TooManyJobs>()("TooManyJobs", {
  scope: Schema.Literals(["account", "host"]),
  limit: Schema.Int,
  retryAfter: Schema.Int
}) {
  override get message(): string {
    return `${this.scope === "account" ? "The account" : "The host"} has ${this.limit} open jobs, which is the limit; try again in ${this.retryAfter} seconds`
  }
}

/** The account has as many pending payments as it may have. `retryAfter` in seconds. */
export class TooManyPayments extends Schema.TaggedError<TooManyPayments>()("TooManyPayments", {
  limit: Schema.Int,
  retryAfter: Schema.Int
}) {
  override get message(): string {
    return `${this.limit} payments of the account are pending, which is the limit`
  }
}

/** The account submitted as much as it may, by the day or to one place. `retryAfter` in seconds. */
export class TooManySubmissions extends Schema.TaggedError<TooManySubmissions>()("TooManySubmissions", {
  limit: Schema.Int,
  retryAfter: Schema.Int
}) {
  override get message(): string {
    return `The limit of ${this.limit} submissions is reached`
  }
}

/** The operation needs an address that is proved to be the account's own. */
export class AddressNotVerified extends Schema.TaggedError<AddressNotVerified>()("AddressNotVerified", {}) {
  override get message(): string {
    return "The account has no verified e-mail address"
  }
}

/** Why a platform gives no download of a video that it has. `upcoming`: it is not out yet, or still processed. */
export const DownloadRefusal = Schema.Literals([
  "private",
  "members_only",
  "age_restricted",
  "region_blocked",
  "live",
  "upcoming",
  "unavailable"
])
export type DownloadRefusal = typeof DownloadRefusal.Type

const REFUSALS: Readonly<Record<DownloadRefusal, string>> = {
  private: "The video is private",
  members_only: "The video is for paying members only",
  age_restricted: "The video is shown only to people who have signed in and proved their age",
  region_blocked: "The video is blocked where this service runs",
  live: "The video is live: it can be downloaded when it has ended",
  upcoming: "The video is not out yet, or is still processed",
  unavailable: "The platform gives no download of this video now"
}

/** The platform has the video, and gives no download of it to this host. */
export class DownloadUnavailable extends Schema.TaggedError<DownloadUnavailable>()("DownloadUnavailable", { reason: DownloadRefusal }) {
  override get message(): string {
    return REFUSALS[this.reason]
  }
}

export type OperationError =
  | InvalidInput
  | NotFound
  | UpstreamUnavailable
  | UpstreamNotConfigured
  | TooManyJobs
  | TooManyPayments
  | TooManySubmissions
  | AddressNotVerified
  | DownloadUnavailable

/**
 * The operation has a bug: its result does not match its schema, it returned no Effect, or its quantity is invalid. It is not the
 * upstream's failure, so it does not count for the circuit. `reason` is for operators.
 */
export class OperationFailed extends Schema.TaggedError<OperationFailed>()("OperationFailed", {
  operation: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `The operation ${this.operation} is faulty: ${this.reason}`
  }
}
