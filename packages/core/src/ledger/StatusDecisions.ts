/** Decisions on the status of an account: open, verify, suspend, reinstate, close. */

import type { Decision } from "@millrace/event-sourcing"
import { Result } from "effect"
import type * as Credits from "../Credits.ts"
import type { Timestamp } from "../Timestamp.ts"
import type { Account } from "./Account.ts"
import type { AccountEvent, EventOf } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"
import { AccountClosed, AccountNotFound } from "./Refusals.ts"
import { Transaction } from "./Transaction.ts"

/** The decision that writes nothing: the command was done before. */
export const NOTHING: Result.Result<ReadonlyArray<never>> = Result.succeed([])

/** Why an account accepts no grant or hold: it was never opened, or is closed. */
export const unusable = (account: Account): AccountNotFound | AccountClosed | undefined =>
  account.status === "absent" ? new AccountNotFound() : account.status === "closed" ? new AccountClosed() : undefined

/** Writes what is due, and nothing else. */
export const applyDue = (account: Account, now: Timestamp): Decision<AccountEvent> => new Transaction(account, now).commit()

/** Opens the account. Opening again decides nothing. */
export const open =
  (event: Omit<EventOf<"AccountOpened">, "_tag">) =>
  (account: Account): Decision<AccountEvent> =>
    account.status === "absent" ? Result.succeed([{ _tag: "AccountOpened", ...event }]) : NOTHING

/** Verifies the account, and grants it its sign-up credits the first time. */
export const verify =
  (signUp: Credits.Credits, lotId: string) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, AccountNotFound | AccountClosed> => {
    const refusal = unusable(account)
    if (refusal !== undefined) return Result.fail(refusal)
    if (account.verified) return NOTHING
    const transaction = new Transaction(account, now)
    transaction.add({ _tag: "AccountVerified" })
    if (signUp > 0) {
      transaction.add({
        _tag: "CreditsGranted",
        lotId,
        amount: signUp,
        source: "signup",
        priority: Lots.DEFAULT_PRIORITY.signup,
        expiresAt: null,
        paymentRef: null
      })
    }
    return transaction.commit()
  }

const changeStatus =
  (event: EventOf<"AccountSuspended"> | EventOf<"AccountReinstated"> | EventOf<"AccountClosed">, already: (account: Account) => boolean) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, AccountNotFound | AccountClosed> => {
    if (already(account)) return NOTHING
    const refusal = unusable(account)
    if (refusal !== undefined) return Result.fail(refusal)
    const transaction = new Transaction(account, now)
    transaction.add(event)
    return transaction.commit()
  }

/** No priced call runs until the account is reinstated; its credits stay. */
export const suspend = changeStatus({ _tag: "AccountSuspended" }, (account) => account.status === "suspended")
export const reinstate = changeStatus(
  { _tag: "AccountReinstated" },
  (account) => account.status === "opened" || account.status === "verified"
)
/** Closes the account for ever. Open holds still end as usual, and its credits stay on the books. */
export const close = changeStatus({ _tag: "AccountClosed" }, (account) => account.status === "closed")
