/**
 * The calls in the log whose work leaves a stream of its own, named after their reservation: waits for codes, new inboxes, proxy sessions. It
 * leads from such a stream to what was held for it, and from a charge to what was done for it.
 */
import { type AccountEvent, Inbox, Proxies, ProxySession, TempMail, Verification, VerificationCodes } from "@millrace/core"
import { noAmount, type Say, type Stake } from "./Means.ts"
import type { Prices } from "./Prices.ts"

/** The operations of these calls. */
export const WAIT = VerificationCodes.wait.key
export const CREATE_INBOX = TempMail.create.key
export const ROTATE_INBOX = TempMail.rotate.key
export const OPEN_SESSION = Proxies.createSession.key

/** The ids of the streams that they leave, by their reservation. */
const STREAM_IDS: ReadonlyMap<string, (reservationId: string) => string> = new Map([
  [WAIT, Verification.idOf],
  [CREATE_INBOX, Inbox.idOf],
  [OPEN_SESSION, ProxySession.idOf]
])

/** The first event of a stream that a call leaves. */
export type Left = Verification.VerificationEvent["_tag"] | "InboxCreated" | "ProxySessionOpened"

interface Held {
  readonly accountId: string
  /** Thousandths. */
  readonly amount: number
}

const moveOf = (accountId: string, requestId: string): string => `${accountId} ${requestId}`

export class CallIndex {
  /** What was held for a stream, by the id of the stream. Streams may be written after their hold ended, so holds that ended stay. */
  readonly #held = new Map<string, Held>()
  /** The calls for which late charges were made, by the reservations of these. */
  readonly #late = new Map<string, string>()
  readonly #left = new Map<string, Left>()
  /** The holds for moves of inboxes that no move has used, by account and request. */
  readonly #moves = new Map<string, number>()
  readonly #doubtful = new Set<string>()
  readonly #prices: Prices
  readonly #isSound: (accountId: string) => boolean

  /** `isSound`: whether an account was replayed this far. */
  constructor(prices: Prices, isSound: (accountId: string) => boolean) {
    this.#prices = prices
    this.#isSound = isSound
  }

  /** Learns from an event of an account. */
  learn(accountId: string, event: AccountEvent): void {
    if (event._tag !== "CreditReserved" && event._tag !== "TrialReserved") return
    if (event.operation === ROTATE_INBOX && !("lateOf" in event)) {
      const move = moveOf(accountId, event.requestId)
      this.#moves.set(move, (this.#moves.get(move) ?? 0) + 1)
    }
    const idOf = STREAM_IDS.get(event.operation)
    if (idOf === undefined) return
    const amount = event._tag === "CreditReserved" ? event.amount : 0
    const lateOf = event._tag === "CreditReserved" ? event.lateOf : undefined
    if (lateOf === undefined) this.#held.set(idOf(event.reservationId), { accountId, amount })
    else this.#late.set(event.reservationId, lateOf)
  }

  /** Notes the first event of a stream. */
  leave(streamId: string, left: Left): void {
    this.#left.set(streamId, left)
  }

  /** Notes that a stream cannot be replayed further. */
  doubt(streamId: string): void {
    this.#doubtful.add(streamId)
  }

  /** What a call of an operation left in the log; undefined for nothing, `unknown` if its stream could not be replayed. */
  leftBy(operation: string, reservationId: string): Left | "unknown" | undefined {
    const streamId = STREAM_IDS.get(operation)?.(this.#late.get(reservationId) ?? reservationId) ?? ""
    return this.#left.get(streamId) ?? (this.#doubtful.has(streamId) ? "unknown" : undefined)
  }

  /** Why no call of this account can have left a stream; undefined if one can. */
  unpaid(operation: string, streamId: string, accountId: string): string | undefined {
    const held = this.#held.get(streamId)
    if (held !== undefined) return held.accountId === accountId ? undefined : `the call was held by account ${held.accountId}`
    // Free calls hold nothing
    if (!this.#isSound(accountId) || this.#prices.mayBeFree(operation)) return undefined
    return `account ${accountId} had held nothing for it under ${operation}`
  }

  /** Uses the hold of a request that moved an inbox. Why there is none; undefined if there is one, or the request may have been free. */
  unpaidMove(accountId: string, requestId: string): string | undefined {
    const move = moveOf(accountId, requestId)
    const unused = this.#moves.get(move)
    if (unused !== undefined && unused > 0) this.#moves.set(move, unused - 1)
    else if (this.#isSound(accountId) && !this.#prices.mayBeFree(ROTATE_INBOX))
      return unused === undefined
        ? `account ${accountId} had held nothing for request ${requestId} under ${ROTATE_INBOX}`
        : `what account ${accountId} held for request ${requestId} had paid for another address`
    return undefined
  }

  /** What is at stake of a stream: `5 credits (0.005 USD) were held for this, {clause}`. */
  stakeOf(streamId: string, account: string, clause: string, say: Say): Stake {
    const { amount = 0 } = this.#held.get(streamId) ?? {}
    if (amount === 0) return { account, ...noAmount(`nothing was held for this, ${clause}`) }
    return { account, amount, sentence: `${say(amount)} were held for this, ${clause}.` }
  }
}
