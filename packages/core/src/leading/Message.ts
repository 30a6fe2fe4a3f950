/**
 * What hosts say to each other on a link. The host that opened the link sends calls; the other runs them and answers. Messages are JSON
 * arrays that begin with their kind.
 */
import type { Caller, Reply } from "../billing/charge/Call.ts"

/** The version of these messages. Hosts of different versions open no links, so each runs its calls itself. */
export const VERSION = 1

/** A call. `input` is the JSON form of the operation's input; `trace`: the headers of the caller's trace, if any. */
export interface Forwarded {
  readonly operation: string
  readonly input: unknown
  readonly caller: Caller
  readonly trace: Readonly<Record<string, string>>
}

/** How a call ended. `error` is the JSON form of a declared error, `defect` the text of a bug. */
export type Ended =
  | { readonly reply: Omit<Reply, "file"> }
  | { readonly error: unknown }
  | { readonly defect: string }
  | { readonly interrupted: true }

export type Message =
  | readonly [kind: "call", id: number, call: Forwarded]
  /** The caller of a call is gone. */
  | readonly [kind: "cancel", id: number]
  | readonly [kind: "ended", id: number, ended: Ended]
  /** The call was not begun, and will not be. */
  | readonly [kind: "refused", id: number]
  /** The host stops: it ends what it has begun, and begins nothing more. */
  | readonly [kind: "leaving"]
  /** Nothing else was to be said for a while. */
  | readonly [kind: "alive"]

/** The longest message of a call, in characters of JSON. A longer call is not forwarded. */
export const LONGEST_CALL = 8 * 1024 * 1024
