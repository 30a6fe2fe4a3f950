/** What an account may: how often it may call, and what is left of that. */
import { Effect, HashMap, Schema } from "effect"
import { ofAccount, RateLimit } from "../billing/RateLimit.ts"
import { TRIAL_SLOTS } from "../ledger/Account.ts"
import * as Decisions from "../ledger/Decisions.ts"
import { Ledger } from "../ledger/Ledger.ts"
import * as Operation from "../work/Operation.ts"
import { NotFound, UpstreamUnavailable } from "../work/OperationError.ts"
import * as CatalogOperations from "./CatalogOperations.ts"
import { LIMITS, Limits } from "./Limits.ts"

const CATALOG = CatalogOperations.read.route.path

export const AccountLimits = Schema.Struct({
  rate_limit: Schema.Struct({
    /** In a window. */
    calls: Schema.Int,
    /** Seconds. */
    window: Schema.Finite,
    /** Calls left in this window, after this one. */
    remaining: Schema.Int,
    /** Seconds until it ends. */
    reset_after: Schema.Int
  }),
  /** Free calls of an account that was not verified yet. */
  free_trial: Schema.Struct({ calls: Schema.Int, remaining: Schema.Int }),
  ...Limits.fields,
  /** Where the bounds of each operation are told: below the address of the API. */
  operation_bounds: Schema.String
})

export const read = Operation.make("account.limits", {
  summary: "How often the account may call, and other limits",
  route: { method: "GET", path: "/account/limits" },
  success: AccountLimits,
  run: Effect.fnUntraced(function* (_input, { accountId }) {
    const ledger = yield* Ledger
    const rates = yield* RateLimit
    const { state, at } = yield* Effect.mapError(
      ledger.read(accountId),
      ({ _tag }) => new UpstreamUnavailable({ upstream: "ledger", reason: _tag })
    )
    if (state.status === "absent") return yield* new NotFound({ resource: "account" })
    const { trial } = Decisions.asOf(state, at)
    const { limit, window, remaining, resetAfter } = yield* rates.peek(ofAccount(accountId))
    return {
      data: {
        ...LIMITS,
        rate_limit: { calls: limit, window, remaining, reset_after: resetAfter },
        free_trial: { calls: TRIAL_SLOTS, remaining: state.verified ? 0 : TRIAL_SLOTS - trial.used - HashMap.size(trial.open) },
        operation_bounds: CATALOG
      }
    }
  }),
  example: {
    input: {},
    data: {
      ...LIMITS,
      rate_limit: { calls: 60, window: 60, remaining: 42, reset_after: 18 },
      free_trial: { calls: TRIAL_SLOTS, remaining: 0 },
      operation_bounds: CATALOG
    }
  }
})
