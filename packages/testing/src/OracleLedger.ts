/**
 * An oracle for the ledger: the same commands, implemented as simply as possible with arrays, sums and loops. It shares no code with the
 * real ledger. Where the two differ, one of them is wrong.
 *
 * The oracle lives through time: everything due happens at its own time. So it also predicts what a ledger answers that was idle meanwhile.
 * Amounts in thousandths of a credit, times in milliseconds.
 */
import type { Command, Prediction, View } from "./oracle/Commands.ts"
import { execute } from "./oracle/Execute.ts"
import { OracleAccount } from "./oracle/OracleAccount.ts"

export {
  type Call,
  type Command,
  type Prediction,
  RENEWED,
  type Reason,
  type Recurring,
  type Source,
  type View
} from "./oracle/Commands.ts"

/** The oracle of one account. */
export interface OracleLedger {
  /** Executes a command and predicts whether the ledger accepts it. */
  readonly tell: (command: Command, now: number) => Prediction
  /** What the account must look like at `now`. */
  readonly view: (now: number) => View
  /** Whether the reply store had a reply under this key at that time. */
  readonly replied: (keyHash: string, at: number) => boolean
}

const DAY = 24 * 3_600_000

export const make = (): OracleLedger => {
  const account = new OracleAccount()
  return {
    tell: (command, now) => {
      account.advanceTo(now)
      const before = account.picture
      const predicted = execute(account, command, now)
      if (command._tag === "ApplyDue" || account.picture !== before) account.written(now)
      return predicted
    },
    view: (now) => {
      account.advanceTo(now)
      return account.view()
    },
    replied: (keyHash, at) =>
      [...account.endings.values()].some(
        ({ how, key, at: since }) => how === "succeeded" && key?.hash === keyHash && since <= at && at < since + DAY
      )
  }
}
