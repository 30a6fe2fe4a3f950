/** An operation that reads the rate limit of an account, the calls left, and the limits common to all accounts. */
import { Effect, Schema } from "effect"
import { ofAccount, RateLimit } from "../billing/RateLimit.ts"
import { Ledger } from "../ledger/Ledger.ts"
import * as Operation from "../work/Operation.ts"
import { NotFound, UpstreamUnavailable } from "../work/OperationError.ts"
import * as CatalogOperations from "./CatalogOperations.ts"
import { COMMON_LIMITS, CommonLimits } from "./CommonLimits.ts"

const CATALOG = CatalogOperations.read.route.path

export const AccountLimits = Schema.Struct({
  rate_limit: Schema.Struct({
    /** Calls in a window. */
    calls: Schema.Int,
    /** Seconds. */
    window: Schema.Finite,
    /** Calls left in this window, after this one. */
    remaining: Schema.Int,
    /** Seconds until the window ends. */
    reset_after: Schema.Int
  }),
  /** The free calls of an account whose address was not verified yet, until it is granted credits. Absent for other accounts. */
  trial: Schema.optionalKey(
    Schema.Struct({
      total: Schema.Int,
      used: Schema.Int,
      /** Calls that are neither used nor running. */
      remaining: Schema.Int
    })
  ),
  ...CommonLimits.fields,
  /** Path of the catalog, which lists the bounds of each operation. Relative to the root of the API. */
  operation_bounds: Schema.String
})

export const read = Operation.make("account.limits", {
  summary: "How often the account may call, and other limits",
  price: 0,
  route: { method: "GET", path: "/account/limits" },
  success: AccountLimits,
  local: true,
  run: Effect.fnUntraced(function* (_input, { accountId }) {
    const ledger = yield* Ledger
    const rates = yield* RateLimit
    const account = yield* Effect.mapError(
      ledger.read(accountId),
      ({ _tag }) => new UpstreamUnavailable({ upstream: "ledger", reason: _tag })
    )
    if (account.state.status === "absent") return yield* new NotFound({ resource: "account" })
    const { limit, window, remaining, resetAfter } = yield* rates.peek(ofAccount(accountId))
    const trial = ledger.trialOf(account)
    return {
      data: {
        ...COMMON_LIMITS,
        rate_limit: { calls: limit, window, remaining, reset_after: resetAfter },
        ...(trial === undefined ? {} : { trial }),
        operation_bounds: CATALOG
      }
    }
  }),
  example: {
    input: {},
    data: {
      ...COMMON_LIMITS,
      rate_limit: { calls: 60, window: 60, remaining: 42, reset_after: 18 },
      operation_bounds: CATALOG
    }
  }
})
