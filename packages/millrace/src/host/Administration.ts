/** What an administrator does, as promises. The command line does the same by the same functions. */

import type { Millrace } from "@millrace/core"
import { type ApiKey, KeyRing, Registration } from "@millrace/core"
import type { Aggregate, EventStore } from "@millrace/event-sourcing"
import { Effect, Option } from "effect"
import * as Accounts from "../administration/Accounts.ts"
import type { Act } from "../administration/Act.ts"
import * as CreditActs from "../administration/Credits.ts"
import * as Keys from "../administration/Keys.ts"
import * as ErasureRegister from "../ErasureRegister.ts"
import { fail } from "../Failure.ts"
import { AT, FINDING, GRANT, OPENING } from "./ArgumentRules.ts"
import { Mistake } from "./Given.ts"
import { assertArguments } from "./Mistakes.ts"
import { amountOf, positiveAmountOf, type Run } from "./Run.ts"

/** Recorded with every event of the act: who, by default `host`, and why. */
export interface Recorded {
  readonly by?: string
  readonly reason?: string
}

/** Credits, and why they are granted. What was paid for has the payment's reference, and the same payment grants once. */
export type Grant = Recorded & { readonly amount: number; readonly expiresAt?: Date } & (
    | { readonly source: "topup" | "subscription"; readonly paymentRef: string }
    | { readonly source: "promotion" | "adjustment" }
  )

/** Credits that are granted each period, from now on, by the calendar in UTC: what begins on 31 January is due on the last of February. */
export type RecurringGrant = Recorded & Omit<CreditActs.Recurring, "amount"> & { readonly amount: number; readonly expiresAt?: never }

/** Accounts, keys and credits. An account is named by its id or by the host's own. Amounts are in credits. */
export interface Administration {
  readonly accounts: {
    /** Opens an account, and returns its id, `acc_...`. A name that has an account rejects with `email_taken` or `reference_taken`. */
    readonly open: (options: Accounts.Opening & Recorded) => Promise<string>
    /** The account of a host's own id, or else of an address; undefined if there is none. */
    readonly find: (options: Pick<Accounts.Opening, "id" | "email">) => Promise<string | undefined>
    readonly show: (account: string) => Promise<Accounts.ShownAccount>
    /** Every account, in the order in which they were opened. Reads the whole log. */
    readonly list: () => Promise<ReadonlyArray<{ readonly account: string; readonly openedAt: Date }>>
    /** The address is the owner's: grants the sign-up credits, once. */
    readonly verify: Change
    /** Stops every priced call; the credits stay. */
    readonly suspend: Change
    readonly reinstate: Change
    /** For ever; its keys stop working. */
    readonly close: Change
    /**
     * The balance of the account, held credits included, is told as low (`credits.low`) when it falls below this threshold, in credits; at
     * once if it is below it now. Null for none.
     */
    readonly threshold: (account: string, below: number | null, recorded?: Recorded) => Promise<Accounts.Threshold>
    /**
     * Closes an account and destroys what was sealed for it: nobody can read its address, labels, replies and jobs any more. Amounts and ids
     * stay. Cannot be undone.
     */
    readonly erase: (account: string, recorded?: Recorded) => Promise<Accounts.Erased>
  }
  readonly keys: {
    /** Issues an API key. Its text is shown this once. */
    readonly issue: (account: string, options?: Keys.KeyOptions & Recorded) => Promise<{ readonly keyId: string; readonly key: string }>
    /** All keys that the account ever had, oldest first. */
    readonly list: (account: string) => Promise<ReadonlyArray<Keys.ListedKey>>
    readonly revoke: (account: string, keyId: string, recorded?: Recorded) => Promise<void>
    /** The account of a key, and what the key may do. Rejects with `unauthorized`. */
    readonly authenticate: (key: string | undefined) => Promise<{ readonly account: string; readonly scopes: ReadonlyArray<ApiKey.Scope> }>
  }
  readonly credits: {
    readonly grant: {
      (account: string, grant: Grant): Promise<CreditActs.Granted>
      /** Grants the first lot now, and another with each period, `every` day, week, month or year, whichever host runs then. */
      (account: string, grant: RecurringGrant): Promise<CreditActs.Started>
    }
    /** The recurring grants of an account that go on. */
    readonly recurring: (account: string) => Promise<ReadonlyArray<CreditActs.ListedGrant>>
    /** Stops a recurring grant. The lots that it granted stay. */
    readonly stop: (account: string, grant: string, recorded?: Recorded) => Promise<void>
    /** Refunds what a call was charged, or `amount` of it. `reservation` is the id of its hold. */
    readonly refund: (reservation: string, options?: { readonly amount?: number } & Recorded) => Promise<CreditActs.Refunded>
    /** Takes a paid lot back, as after a chargeback. What was spent of it becomes debt. */
    readonly clawBack: (lot: string, recorded?: Recorded) => Promise<CreditActs.ClawedBack>
  }
  /** What the account has, now or at a past time, by lot and by hold. */
  readonly balance: (account: string, options?: { readonly at?: Date }) => Promise<CreditActs.Balance>
}

type Change = (account: string, recorded?: Recorded) => Promise<{ readonly status: Accounts.ShownAccount["status"] }>

export const metadata = (act: string, { by = "host", reason = act }: Recorded = {}): Aggregate.Metadata => ({ actor: by, reason })

const granting = (account: string, grant: Grant | RecurringGrant): Act<CreditActs.Granted> => {
  const amount = positiveAmountOf(grant.amount, "amount")
  const recorded = metadata("credits.grant", grant)
  if (!("every" in grant)) return CreditActs.grant(account, { ...grant, amount }, recorded)
  // A caller in JavaScript may mix the two
  if (grant.expiresAt !== undefined) return fail("the lots of a recurring grant expire next or never: give expires, not expiresAt")
  return CreditActs.start(account, { ...grant, amount }, recorded)
}

export const administrationOf = (
  run: Run<Millrace.Administration | EventStore.EventStore>,
  { erasures, store }: { readonly store: string; readonly erasures?: string }
): Administration => {
  const changing =
    (act: Parameters<typeof Accounts.change>[0]): Change =>
    (account, recorded) =>
      run(Accounts.change(act, account, metadata(`accounts.${act}`, recorded)))
  return {
    accounts: {
      open: async (options) => {
        assertArguments("accounts.open", options, OPENING)
        if (options.id === undefined && options.email === undefined) throw new Mistake("accounts.open needs an id, an email, or both")
        return run(Accounts.open(options, metadata("accounts.open", options)))
      },
      find: async (options) => {
        assertArguments("accounts.find", options, FINDING)
        const { email, id } = options
        return run(Registration.use((registration) => registration.find({ ...(email && { email }), ...(id && { reference: id }) })))
      },
      show: (account) => run(Accounts.show(account)),
      list: () => run(Accounts.list),
      verify: changing("verify"),
      suspend: changing("suspend"),
      reinstate: changing("reinstate"),
      close: changing("close"),
      threshold: (account, below, recorded) =>
        run(
          Effect.suspend(() =>
            Accounts.threshold(account, below === null ? null : amountOf(below, "below"), metadata("accounts.threshold", recorded))
          )
        ),
      erase: (account, recorded) =>
        run(
          Effect.flatMap(ErasureRegister.needed(store, Option.fromUndefinedOr(erasures)), (file) =>
            Accounts.erase(account, metadata("accounts.erase", recorded), (subject) => ErasureRegister.add(file, subject))
          )
        )
    },
    keys: {
      issue: (account, { by, reason, ...options } = {}) =>
        run(Keys.issue(account, options, metadata("keys.issue", { ...(by && { by }), ...(reason && { reason }) }))),
      list: (account) => run(Keys.list(account)),
      revoke: (account, keyId, recorded) => run(Keys.revoke(account, keyId, metadata("keys.revoke", recorded))),
      authenticate: (key) =>
        run(
          Effect.map(
            KeyRing.use((keys) => keys.authenticate(key)),
            ({ accountId, scopes }) => ({ account: accountId, scopes })
          )
        )
    },
    credits: {
      grant: (async (account: string, grant: Grant | RecurringGrant) => {
        assertArguments("credits.grant", grant, GRANT)
        return run(Effect.suspend(() => granting(account, grant)))
      }) as never,
      recurring: (account) => run(CreditActs.recurring(account)),
      stop: async (account, grant, recorded) => void (await run(CreditActs.stop(account, grant, metadata("credits.stop", recorded)))),
      refund: (reservation, { amount, ...recorded } = {}) =>
        run(
          Effect.suspend(() =>
            CreditActs.refund(
              reservation,
              amount === undefined ? undefined : amountOf(amount, "amount"),
              metadata("credits.refund", recorded)
            )
          )
        ),
      clawBack: (lot, recorded) => run(CreditActs.clawBack(lot, metadata("credits.clawBack", recorded)))
    },
    balance: async (account, options = {}) => {
      assertArguments("balance", options, AT)
      return run(CreditActs.balance(account, options.at))
    }
  }
}
