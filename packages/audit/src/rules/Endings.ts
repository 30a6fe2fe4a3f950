/** Holds that are still open at the end of the log. */
import { Account } from "@millrace/core"

/**
 * Holds that outlived their deadline at `now` and that only recovery can end. Those that the ledger itself ends by the next decision or
 * balance count as released, written or not. A job's hold waits for its job, once that has begun.
 */
export const overdueHolds = (
  account: Account.Account,
  now: number,
  jobBegan: (jobId: string) => boolean
): ReadonlyArray<{ readonly reservationId: string; readonly since: number }> => {
  const overdue: Array<{ reservationId: string; since: number }> = []
  for (const [reservationId, hold] of account.purse.holds) {
    if (Account.expiresByItself(hold) || (hold.jobId !== undefined && jobBegan(hold.jobId))) continue
    const since = hold.expiresAt ?? hold.acceptBy
    if (since !== undefined && since <= now) overdue.push({ reservationId, since })
  }
  return overdue
}
