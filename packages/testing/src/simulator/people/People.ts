/** What people did and know, for the checkers: the acts of which a history is made. */
import type { Act as KeyAct } from "../../KeyHistory.ts"
import type { Act } from "../../SignInHistory.ts"

/** Someone who asked for a link, and what their browser kept, once it was answered. */
export interface Asked {
  readonly address: string
  readonly at: number
  browser?: string
}

export interface KnownSession {
  readonly session: string
  readonly account: string
  readonly token: string
  readonly openedAt: number
}

export interface KnownKey {
  readonly key: string
  readonly account: string
  readonly text: string
  /** Milliseconds since 1970; null if it never ends. */
  readonly expiresAt: number | null
}

/** What people did and know. */
export class People {
  readonly acts: Array<Act> = []
  readonly keyActs: Array<KeyAct> = []
  /** By the name of the browser that asked. */
  readonly asks = new Map<string, Asked>()
  readonly sessions: Array<KnownSession> = []
  readonly keys = new Map<string, KnownKey>()
  #count = 0

  /** The next number of a count of beginnings and ends. */
  next(): number {
    return ++this.#count
  }
}
