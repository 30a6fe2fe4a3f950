/** Reasons to refuse a request before or beside its operation. */
import { Schema } from "effect"

/** The API key is valid, but lacks a scope. */
export class InsufficientScope extends Schema.TaggedError<InsufficientScope>()("InsufficientScope", { scope: Schema.String }) {}
/** `allow`: the methods that the path takes. */
export class MethodNotAllowed extends Schema.TaggedError<MethodNotAllowed>()("MethodNotAllowed", { allow: Schema.Array(Schema.String) }) {}
export class RouteNotFound extends Schema.TaggedError<RouteNotFound>()("RouteNotFound", {}) {}
/** `limit` in bytes. */
export class PayloadTooLarge extends Schema.TaggedError<PayloadTooLarge>()("PayloadTooLarge", { limit: Schema.Int }) {}
export class UnsupportedMediaType extends Schema.TaggedError<UnsupportedMediaType>()("UnsupportedMediaType", {}) {}
export class MalformedJson extends Schema.TaggedError<MalformedJson>()("MalformedJson", { reason: Schema.String }) {}
/** The body ended before it was complete. */
export class BodyUnreadable extends Schema.TaggedError<BodyUnreadable>()("BodyUnreadable", {}) {}
/** The invalid fields and headers, each with its reason. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  issues: Schema.Array(Schema.Struct({ field: Schema.String, message: Schema.String }))
}) {}
/** The requested range begins past the end of the file, which has `size` bytes. */
export class RangeNotSatisfiable extends Schema.TaggedError<RangeNotSatisfiable>()("RangeNotSatisfiable", { size: Schema.Int }) {}
/** A bug, ours or an operation's. */
export class Defect extends Schema.TaggedError<Defect>()("Defect", {}) {}
/** This process accepts no new calls, or has ended this one. */
export class ShuttingDown extends Schema.TaggedError<ShuttingDown>()("ShuttingDown", {}) {}

export type Refusal =
  | InsufficientScope
  | MethodNotAllowed
  | RouteNotFound
  | PayloadTooLarge
  | UnsupportedMediaType
  | MalformedJson
  | BodyUnreadable
  | InvalidRequest
  | RangeNotSatisfiable
  | Defect
  | ShuttingDown
