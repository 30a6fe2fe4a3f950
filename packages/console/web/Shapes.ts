/** What pages read from the server: the paths, and the shapes of the data. */

export interface Lot {
  readonly lot_id: string
  readonly source: string
  readonly remaining: number
  readonly expires_at: string | null
}

export interface Billing {
  readonly balance: number
  readonly held: number
  readonly debt: number
  readonly lots: ReadonlyArray<Lot>
  readonly usage: {
    readonly month: string
    readonly calls: number
    readonly credits: number
    readonly refunded: number
    readonly uncharged_calls: number
    readonly operations: ReadonlyArray<{
      readonly operation: string
      readonly calls: number
      readonly credits: number
      readonly units: number
    }>
  }
}

export interface Activity {
  readonly days: ReadonlyArray<{
    readonly date: string
    /** At the end of the day, credits that were held included. */
    readonly balance: number
    readonly charged: number
    readonly granted: number
  }>
}

export interface Limits {
  readonly trial?: { readonly total: number; readonly used: number; readonly remaining: number }
  readonly rate_limit: { readonly calls: number; readonly window: number; readonly remaining: number }
}

export type Outcome = "running" | "charged" | "released" | "refunded"

export interface Call {
  readonly reservation_id: string
  readonly request_id: string
  readonly operation: string
  readonly outcome: Outcome
  /** Why credits went back; null where none did. */
  readonly reason: string | null
  readonly quantity: number
  readonly price_version: number | null
  readonly held: number
  readonly charged: number | null
  readonly refunded: number
  readonly job_id: string | null
  readonly lots: ReadonlyArray<{ readonly lot_id: string; readonly amount: number }>
  readonly started_at: string
  readonly ended_at: string | null
  readonly refunded_at: string | null
}

export interface Calls {
  readonly calls: ReadonlyArray<Call>
  readonly next: string | null
}

export const BILLING = "/api/v1/account/billing"
export const ACTIVITY = "/api/v1/account/activity"
export const CALLS = "/api/v1/account/calls"
export const LIMITS = "/api/v1/account/limits"
