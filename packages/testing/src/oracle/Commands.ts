/** The commands that the oracle ledger takes, and what it answers. Amounts in thousandths of a credit, times in milliseconds. */
import type { Every } from "./Calendar.ts"

export type Source = "signup" | "topup" | "subscription" | "promotion" | "adjustment"
export type Reason = "service_error" | "cancelled" | "expired" | "abandoned" | "goodwill"

/** A call that reserves credits; see `Decisions.Reserve`. */
export interface Call {
  readonly reservationId: string
  readonly quantity: number
  readonly unitPrice: number
  readonly end:
    | { readonly _tag: "itself"; readonly lifetime: number }
    | { readonly _tag: "recovery"; readonly lifetime: number }
    | { readonly _tag: "job"; readonly acceptWithin: number }
  /** Lifetime of credits that are returned after their lot has expired, milliseconds: a week by default. */
  readonly adjustmentLifetime?: number
  /** `lookedUpAt`: when the reply store was asked. `knownAt`: the time of the state from which successes were counted before that. */
  readonly key?: { readonly hash: string; readonly fingerprint: string; readonly lookedUpAt: number; readonly knownAt: number }
}

/** A lot each period, from now on. */
export interface Recurring {
  readonly grantId: string
  readonly amount: number
  readonly source: Source
  readonly priority: number
  readonly every: Every
  /** No period begins then or later. */
  readonly until: number | null
  readonly expires: "next" | "never"
}

/** A command to an account: one for each decision of the ledger. */
export type Command =
  | { readonly _tag: "Open" | "Suspend" | "Reinstate" | "Close" | "ApplyDue" }
  | { readonly _tag: "Verify"; readonly signUp: number; readonly lotId: string }
  | {
      readonly _tag: "Grant"
      readonly lotId: string
      readonly amount: number
      readonly source: Source
      readonly priority: number
      readonly expiresAt: number | null
    }
  | { readonly _tag: "ClawBack"; readonly lotId: string; readonly amount: number | undefined }
  | {
      readonly _tag: "ReverseClawback"
      readonly lotId: string
      readonly amount: number | undefined
      readonly adjustmentLifetime?: number | undefined
    }
  | { readonly _tag: "Reserve"; readonly call: Call }
  | { readonly _tag: "Settle"; readonly reservationId: string; readonly quantity: number | undefined }
  | { readonly _tag: "SettleLate"; readonly lateOf: string; readonly call: Call; readonly quantity: number | undefined }
  | { readonly _tag: "Release"; readonly reservationId: string; readonly reason: Exclude<Reason, "goodwill"> }
  | {
      readonly _tag: "Refund"
      readonly reservationId: string
      readonly reason: Reason
      readonly amount: number | undefined
      readonly adjustmentLifetime?: number | undefined
    }
  | { readonly _tag: "StartRecurring"; readonly grant: Recurring }
  | { readonly _tag: "StopRecurring"; readonly grantId: string }
  | { readonly _tag: "AnnounceExpiry"; readonly lotId: string }
  | { readonly _tag: "SetThreshold"; readonly threshold: number | null }
  | { readonly _tag: "ReserveTrial"; readonly reservationId: string; readonly lifetime: number }
  | { readonly _tag: "UseTrial" | "ReleaseTrial"; readonly reservationId: string }

/** The tags of the errors by which the ledger may refuse the command. Empty: it must accept it. */
export type Prediction = ReadonlyArray<string>

/** What an account must look like. */
export interface View {
  readonly status: "absent" | "opened" | "verified" | "suspended" | "closed"
  readonly available: number
  readonly held: number
  readonly debt: number
  /** Lots with credits left or held, in the order in which they are spent. */
  readonly lots: ReadonlyArray<{
    /** {@link RENEWED} for a lot that the ledger granted by itself. */
    readonly lotId: string
    readonly source: Source
    readonly priority: number
    readonly expiresAt: number | null
    readonly left: number
    readonly held: number
    readonly claimed: number
    /** Whether its expiry was announced. */
    readonly announced: boolean
  }>
  readonly trials: { readonly used: number; readonly open: number }
  /** The recurring grants that go on, with the number of the next period, from 0, and when it begins. */
  readonly recurring: ReadonlyArray<{ readonly grantId: string; readonly period: number; readonly dueAt: number }>
  /** Null: none. */
  readonly threshold: number | null
  /** Whether the account has fewer credits than its threshold, held ones counted and those that clawbacks claim not. */
  readonly low: boolean
}

/** The id that a {@link View} shows for every lot that the ledger granted by itself. */
export const RENEWED = "renewed"
