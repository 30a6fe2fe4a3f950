/**
 * What an operation may answer instead of a success. Each error is refunded in full; one found in `check`, before a hold, writes nothing.
 */
import { Schema } from "effect"

/** Well-formed, but not something this operation can do. `message` names the field and what would do. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>()("InvalidInput", {
  field: Schema.String,
  message: Schema.String
}) {}

/** The resource does not exist, or not for this caller. `resource` is a word such as `bin` or `domain`. */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { resource: Schema.String }) {}

/** The upstream failed, refused, hung, or answered something that is no answer. */
export class UpstreamUnavailable extends Schema.TaggedError<UpstreamUnavailable>()("UpstreamUnavailable", {
  upstream: Schema.String,
  /** For operators: it may name hosts and causes, and is never shown to a caller. */
  reason: Schema.String,
  /**
   * Only this question failed, as where somebody else's server had to be asked: it says nothing of the upstream, and opens no circuit.
   * Otherwise one caller could pick five questions that fail, and the operation would be closed to all.
   */
  isolated: Schema.optionalKey(Schema.Boolean)
}) {}

/** This host has no provider for the operation. */
export class UpstreamNotConfigured extends Schema.TaggedError<UpstreamNotConfigured>()("UpstreamNotConfigured", {
  upstream: Schema.String
}) {}

/** Too many jobs wait or run already: of this account, or of all at this host. Nothing was held. `retryAfter` in seconds. */
export class TooManyJobs extends Schema.TaggedError<TooManyJobs>()("TooManyJobs", {
  scope: Schema.Literals(["account", "host"]),
  limit: Schema.Int,
  retryAfter: Schema.Int
}) {}

export type OperationError = InvalidInput | NotFound | UpstreamUnavailable | UpstreamNotConfigured | TooManyJobs

/**
 * The operation has a bug: its result breaks its own schema, it returned no Effect, or it counted a quantity that cannot be. It is not
 * the upstream's failure, so it does not count against the circuit. `reason` is for operators.
 */
export class OperationFailed extends Schema.TaggedError<OperationFailed>()("OperationFailed", {
  operation: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `The operation ${this.operation} is faulty: ${this.reason}`
  }
}
