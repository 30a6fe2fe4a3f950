/**
 * What an operation may answer instead of a success. Each is refunded in full; found in `check`, before a hold, it writes nothing.
 */
import { Schema } from "effect"

/** Well-formed, but not something this operation can do. `message` names the field and what would do. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>()("InvalidInput", {
  field: Schema.String,
  message: Schema.String
}) {}

/** What was asked for does not exist, or not for this caller. `resource` is a word such as `bin` or `domain`. */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { resource: Schema.String }) {}

/** The upstream failed, refused, hung, or answered something that is no answer. */
export class UpstreamUnavailable extends Schema.TaggedError<UpstreamUnavailable>()("UpstreamUnavailable", {
  upstream: Schema.String,
  /** For operators: it may name hosts and causes, and is never shown to a caller. */
  reason: Schema.String,
  /**
   * Only this question failed, as where somebody else's server had to be asked: it says nothing of the upstream, and opens no circuit.
   * Else five questions that one caller picked would close the door to all.
   */
  isolated: Schema.optionalKey(Schema.Boolean)
}) {}

/** No provider was configured for this operation at this host. */
export class UpstreamNotConfigured extends Schema.TaggedError<UpstreamNotConfigured>()("UpstreamNotConfigured", {
  upstream: Schema.String
}) {}

/** So many jobs wait or run already: of this account, or of all at this host. Nothing was held. `retryAfter` in seconds. */
export class TooManyJobs extends Schema.TaggedError<TooManyJobs>()("TooManyJobs", {
  scope: Schema.Literals(["account", "host"]),
  limit: Schema.Int,
  retryAfter: Schema.Int
}) {}

export type OperationError = InvalidInput | NotFound | UpstreamUnavailable | UpstreamNotConfigured | TooManyJobs
