/** The rule of holds that are still open at the end of the log. */
import { Account } from "@millrace/core"

/**
 * Holds that are overdue at `now` and that only recovery can end. Holds that the ledger ends with the next decision count as released. The
 * hold of an accepted job waits for the job.
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
