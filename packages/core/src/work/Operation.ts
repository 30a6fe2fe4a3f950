/** A billable operation: a call, a job or a file. The three share a `Contract`. */
import type { Effect, Schema } from "effect"
import type { Call } from "./CallOperation.ts"
import type { Path, Requester, Route } from "./Contract.ts"
import type { File } from "./FileOperation.ts"
import type { Job } from "./JobOperation.ts"
import type { OperationError } from "./OperationError.ts"

export * from "./CallOperation.ts"
export {
  type Caller,
  type Contract,
  type Contract as Operation,
  type Credential,
  inputOf,
  type Link,
  type Page,
  type Requester,
  type Route,
  type RouteOf
} from "./Contract.ts"
export * from "./FileOperation.ts"
export * from "./JobOperation.ts"

// biome-ignore-start lint/suspicious/noExplicitAny: only `any` admits every operation, because inputs are contravariant

type AnySchema = Schema.Codec<any, any>
type AnyRoute = Route<string, Path, any, any, any>
type AnyCheck<E, R> = (input: any, requester: Requester) => Effect.Effect<void, E, R>

/** Any call. */
export type AnyCall<E extends OperationError = OperationError, R = any> = Call<string, AnyRoute, AnySchema, E, R>
/** Any operation that runs as a job. */
export type AnyJob<E extends OperationError = OperationError, R = any> = Job<string, AnyRoute, AnySchema, E, R, any, any>
/** Any operation that replies with a file. */
export type AnyFile<E extends OperationError = OperationError, R = any> = File<string, AnyRoute, E, R>
/** Any operation. */
export type Any<E extends OperationError = OperationError, R = any> = AnyCall<E, R> | AnyJob<E, R> | AnyFile<E, R>

/** The input of an operation. */
export type InputOf<Op extends { readonly check: (input: any, requester: Requester) => unknown }> = Parameters<Op["check"]>[0]
/** The errors of an operation. */
export type ErrorOf<Op> = Op extends { readonly check: AnyCheck<infer E extends OperationError, any> } ? E : never
/** The services that an operation needs. */
export type Services<Op> = Op extends { readonly check: AnyCheck<any, infer R> } ? R : never

// biome-ignore-end lint/suspicious/noExplicitAny: as above
