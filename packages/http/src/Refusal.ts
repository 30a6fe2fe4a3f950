/** Reasons to refuse a request before or beside its operation. */
import { Schema } from "effect"

/** The API key is valid, but lacks a scope. */
export class InsufficientScope extends Schema.TaggedError<InsufficientScope>()("InsufficientScope", { scope: Schema.String }) {
  override get message(): string {
    return `This API key lacks the scope ${this.scope}`
  }
}
/** A request with a session's cookie that a page of another site may have caused: see `sessions/SameOrigin.ts`. */
export class CrossSiteRequest extends Schema.TaggedError<CrossSiteRequest>()("CrossSiteRequest", {}) {
  override get message(): string {
    return "The request was not made by a page of this service, or lacks the token against forged requests"
  }
}
/** `allow`: the methods that the path takes. */
export class MethodNotAllowed extends Schema.TaggedError<MethodNotAllowed>()("MethodNotAllowed", { allow: Schema.Array(Schema.String) }) {
  override get message(): string {
    return `The path takes ${this.allow.join(", ") || "no method"} and nothing else`
  }
}
export class RouteNotFound extends Schema.TaggedError<RouteNotFound>()("RouteNotFound", {}) {
  override get message(): string {
    return "There is no such path"
  }
}
/** `limit` in bytes. */
export class PayloadTooLarge extends Schema.TaggedError<PayloadTooLarge>()("PayloadTooLarge", { limit: Schema.Int }) {
  override get message(): string {
    return `The body has more than ${this.limit} bytes`
  }
}
export class UnsupportedMediaType extends Schema.TaggedError<UnsupportedMediaType>()("UnsupportedMediaType", {}) {
  override get message(): string {
    return "The body must be application/json"
  }
}
export class MalformedJson extends Schema.TaggedError<MalformedJson>()("MalformedJson", { reason: Schema.String }) {
  override get message(): string {
    return `The body is not valid JSON: ${this.reason}`
  }
}
/** The body ended before it was complete. */
export class BodyUnreadable extends Schema.TaggedError<BodyUnreadable>()("BodyUnreadable", {}) {
  override get message(): string {
    return "The body ended before it was complete"
  }
}
/** The invalid fields and headers, each with its reason. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  issues: Schema.Array(Schema.Struct({ field: Schema.String, message: Schema.String }))
}) {
  override get message(): string {
    return `The request is invalid: ${this.issues.map(({ field, message }) => `${field}: ${message}`).join("; ")}`
  }
}
/** The requested range begins past the end of the file, which has `size` bytes. */
export class RangeNotSatisfiable extends Schema.TaggedError<RangeNotSatisfiable>()("RangeNotSatisfiable", { size: Schema.Int }) {
  override get message(): string {
    return `The range begins past the end of the file, which has ${this.size} bytes`
  }
}
/** A bug, ours or an operation's. */
export class Defect extends Schema.TaggedError<Defect>()("Defect", {}) {
  override get message(): string {
    return "A bug ended the request"
  }
}
/** This process accepts no new calls, or has ended this one. */
export class ShuttingDown extends Schema.TaggedError<ShuttingDown>()("ShuttingDown", {}) {
  override get message(): string {
    return "The server is about to end"
  }
}

export type Refusal =
  | InsufficientScope
  | CrossSiteRequest
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
