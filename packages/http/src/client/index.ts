export { type CallOptions, type Client, createClient, type Method, type Options, type Surroundings } from "./Client.ts"
export type { Reply } from "./Exchange.ts"
export {
  AccountBlocked,
  ApiError,
  type Code,
  Conflict,
  CostExceedsLimit,
  type Failure,
  Forbidden,
  InsufficientCredits,
  InvalidRequest,
  isFailure,
  MillraceError,
  NoAnswer,
  NotFound,
  RateLimited,
  Unauthorized,
  Unavailable,
  UnexpectedAnswer
} from "./Failure.ts"
export type { DataOf, InputOf, Json } from "./Methods.ts"
export type { RetryOptions } from "./Retry.ts"
export { type Line, type Routes, routesOf } from "./Routes.ts"
export { STANDARD_ROUTES, type StandardOperation } from "./StandardRoutes.ts"
