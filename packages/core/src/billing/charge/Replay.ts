/**
 * Replays replies to callers who retry with the same idempotency key. A reply is stored before its call is settled, so a stored reply does
 * not prove a success: the account, or the job that the call became, says whether it counts.
 */
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect } from "effect"
import * as Credits from "../../Credits.ts"
import { idOf as jobIdOf } from "../../jobs/Job.ts"
import { type Account, isOpen, outcome, trialOutcome } from "../../ledger/Account.ts"
import * as Decisions from "../../ledger/Decisions.ts"
import type { OperationError } from "../../work/OperationError.ts"
import type { Done } from "../../work/Perform.ts"
import type { StoredReply } from "../Replies.ts"
import {
  type Admitted,
  billed,
  type Call,
  type Caller,
  type ChargeError,
  type Free,
  type Held,
  type Key,
  lifetimeOf,
  type Replayed,
  type Reply,
  ReplyUnavailable
} from "./Call.ts"
import type { Services } from "./Services.ts"

export type Needs = Pick<Services, "ledger" | "replies" | "jobs" | "vault">

// the key

/** The HMACs of a caller's key and request, ready for a lookup. */
export const keyOf = (
  needs: Pick<Needs, "ledger" | "vault">,
  { accountId }: Pick<Caller, "accountId">,
  { key, request }: NonNullable<Caller["idempotency"]>
): Effect.Effect<Key, Aggregate.Failure> =>
  marked(needs, accountId, {
    hash: needs.vault.hmac("idempotency-key", `${accountId}\n${key}`),
    fingerprint: needs.vault.hmac("request-fingerprint", request)
  })

/**
 * The key with the number of successes that the account has recorded. It must be taken before the lookup, so that the reservation can
 * detect a stale lookup: see `Memory.ts`.
 */
export const marked = (
  { ledger }: Pick<Needs, "ledger">,
  accountId: string,
  { fingerprint, hash }: Omit<Key, "since">
): Effect.Effect<Key, Aggregate.Failure> => Effect.map(ledger.recorded(accountId), (since) => ({ hash, fingerprint, since }))

// finding

/** The reply stored under the key; undefined if the key is free for a new attempt. `InFlight` while another attempt runs. */
export const find = Effect.fnUntraced(function* <E extends OperationError, R>(
  services: Needs,
  call: Pick<Call<E, R>, "accountId" | "input" | "operation" | "requestId">,
  key: Key
): Effect.fn.Return<Replayed | undefined, E | ChargeError, R> {
  const { accountId, input, operation, requestId } = call
  const kept = yield* services.replies.find(accountId, key.hash)
  if (kept === undefined) return undefined
  const account = yield* services.ledger.read(accountId)
  const end = yield* endOf(services, accountId, account, kept)
  if (end === "over") return undefined
  if (kept.fingerprint !== key.fingerprint) return yield* new Decisions.KeyReused()
  if (end === "open") return yield* new Decisions.InFlight({ reservationId: kept.reservationId })
  // The claim of a free job that has begun since it was read: its reply was stored before that
  if (kept.free === "running") return yield* find(services, call, key)
  if (kept.data === null) return yield* new ReplyUnavailable()
  const reply: Reply = {
    requestId: kept.requestId,
    data: kept.data,
    billed: billed(services.ledger, account, end.charged),
    replayed: true
  }
  if (end.began) return { _tag: "Replayed", reply: { ...reply, job: { id: jobIdOf(kept.reservationId) } } }
  if (operation._tag !== "File") return { _tag: "Replayed", reply }
  const file = yield* operation.open(input, { accountId, requestId, reservationId: kept.reservationId })
  return { _tag: "Replayed", reply: { ...reply, file } }
})

/** Whether a reply is stored under the key that may be replayed. */
export const isKept = Effect.fnUntraced(function* (services: Needs, accountId: string, key: Key) {
  const kept = yield* services.replies.find(accountId, key.hash)
  return kept !== undefined && !(yield* isOver(services, accountId)(kept))
})

/**
 * The state of the call of a stored reply. `open`: it runs. `over`: it failed, so the key is free. A call with a charge is replayed; `began`:
 * it became a job.
 */
type End = "open" | "over" | { readonly charged: Credits.Credits; readonly began: boolean }

const endOf = Effect.fnUntraced(function* (
  services: Pick<Needs, "ledger" | "jobs">,
  accountId: string,
  account: Aggregate.Current<Account>,
  kept: StoredReply
): Effect.fn.Return<End, Aggregate.Failure> {
  const ended = kept.free === undefined ? yield* reservationEnd(services, accountId, account, kept) : "over"
  // A job that was accepted keeps its key, however it ended
  if (kept.job === true && (yield* hasBegun(services, kept.reservationId)))
    return { charged: typeof ended === "string" ? Credits.zero : ended.charged, began: true }
  if (kept.free === undefined) return ended
  if (kept.free === "running") return "open"
  return kept.job === true ? "over" : { charged: Credits.zero, began: false }
})

/** How a reservation ended, from the account's memory or else from its stream. */
const reservationEnd = Effect.fnUntraced(function* (
  { ledger }: Pick<Needs, "ledger">,
  accountId: string,
  { at, state }: Aggregate.Current<Account>,
  { reservationId, revision }: StoredReply
): Effect.fn.Return<End, Aggregate.Failure> {
  const account = Decisions.asOf(state, at)
  if (isOpen(account, reservationId)) return "open"
  const end =
    outcome(account, reservationId) ?? trialEnd(account, reservationId) ?? (yield* ledger.ending(accountId, reservationId, revision))
  if (end?._tag === "TrialUsed") return { charged: Credits.zero, began: false }
  return end !== undefined && "charged" in end ? { charged: end.charged, began: false } : "over"
})

const trialEnd = (account: Account, reservationId: string) => {
  const end = trialOutcome(account, reservationId)
  return end && ({ _tag: end === "succeeded" ? "TrialUsed" : "TrialReleased" } as const)
}

const hasBegun = ({ jobs }: Pick<Needs, "jobs">, reservationId: string) =>
  Effect.map(jobs.read(jobIdOf(reservationId)), ({ state: { status } }) => status !== "absent" && status !== "refused")

// keeping

/** The revision in the reply of a free call. */
const NO_HOLD = -1

/** Step 4: stores the reply of a call with a key. It replaces a reply that is over. Returns another attempt's reply if that stays. */
export const keep = (
  services: Needs,
  admitted: Admitted,
  done: Pick<Done, "data">
): Effect.Effect<StoredReply | undefined, ChargeError> => {
  const { call } = admitted
  const { accountId, key, operation } = call
  if (key === undefined) return Effect.undefined
  const data = operation._tag === "Call" && operation.unkept === true ? null : done.data
  const reply: StoredReply =
    admitted._tag === "Held"
      ? { ...storedOf(call, key), revision: admitted.hold.revision, data }
      : { ...storedOf(call, key), data, free: "done" }
  return services.replies.keep(accountId, key.hash, reply, isOver(services, accountId))
}

/**
 * Stores the reply as {@link keep} does. If another call has the key that no hold keeps from running at the same time, returns its reply, or
 * fails as {@link find} does: that is a free call, or one that became a job. A job keeps its key after its hold has ended, and may have
 * failed between this call's lookup and its hold. If the reply of any other attempt stays, this call's hold has ended, which its settle
 * detects.
 */
export const keepOrYield = Effect.fnUntraced(function* <E extends OperationError, R>(
  services: Needs,
  admitted: Held<E, R> | Free<E, R>,
  done: Pick<Done, "data">
): Effect.fn.Return<Replayed | undefined, E | ChargeError, R> {
  const { call } = admitted
  const standing = yield* keep(services, admitted, done)
  if (standing === undefined || call.key === undefined || (standing.free === undefined && standing.job !== true)) return undefined
  // Without a reply that counts, the key is free by now
  return (yield* find(services, call, call.key)) ?? (yield* keepOrYield(services, admitted, done))
})

/**
 * Claims the key of a free call for as long as it may take. A free call has no hold, so this entry prevents a second call from
 * running at the same time. Returns the reply of a call that has ended meanwhile, or fails as {@link find} does.
 */
export const claim = Effect.fnUntraced(function* <E extends OperationError, R>(
  services: Needs,
  call: Call<E, R>,
  key: Key
): Effect.fn.Return<Replayed | undefined, E | ChargeError, R> {
  const { accountId, operation } = call
  const reply: StoredReply = { ...storedOf(call, key), data: null, free: "running" }
  const standing = yield* services.replies.claim(accountId, key.hash, reply, lifetimeOf(operation), isOver(services, accountId))
  if (standing === undefined) return undefined
  return (yield* find(services, call, key)) ?? (yield* new Decisions.InFlight({ reservationId: standing.reservationId }))
})

const storedOf = ({ operation, requestId, reservationId }: Call, { fingerprint }: Key) => ({
  ...{ reservationId, requestId, fingerprint, revision: NO_HOLD },
  ...(operation._tag === "Job" ? { job: true as const } : {})
})

/** Whether another attempt's reply will never be replayed. */
const isOver = (services: Pick<Needs, "ledger" | "jobs">, accountId: string) => (existing: StoredReply) =>
  Effect.map(
    Effect.flatMap(services.ledger.read(accountId), (account) => endOf(services, accountId, account, existing)),
    (end) => end === "over"
  )
