/** What the thread that judges messages and its host tell each other. */
import type { Authentication } from "@millrace/core"

export interface Received {
  readonly raw: Uint8Array
  /** The address of the client. */
  readonly ip: string
  /** What the client said after HELO or EHLO. */
  readonly helo: string
  /** Of MAIL FROM; null for a bounce. */
  readonly sender: string | null
}

/** In the format of `node:dns`. */
export type DnsValue = string | ReadonlyArray<string> | { readonly exchange: string; readonly priority: number }

/** Its values, or the error code of `node:dns` that tells absence from failure. */
export type DnsOutcome = { readonly values: ReadonlyArray<DnsValue> } | { readonly code: "ENOTFOUND" | "ENODATA" | "ESERVFAIL" }

/** A message to judge, an answer to a question, or the end of a check that nobody waits for. `id`: the check. */
export type ToThread =
  | { readonly id: number; readonly message: Received }
  | { readonly id: number; readonly question: number; readonly outcome: DnsOutcome }
  | { readonly id: number; readonly isOver: true }

/** The verdicts of a check, or a question to name servers. */
export type FromThread =
  | { readonly id: number; readonly verdicts: Authentication }
  | { readonly id: number; readonly question: number; readonly domain: string; readonly type: string }

export const UNCHECKED: Authentication = { spf: null, dkim: null, dmarc: null, arc: null }
export const IN_DOUBT: Authentication = { spf: "temperror", dkim: "temperror", dmarc: "temperror", arc: "temperror" }
