/**
 * A passkey: a key pair of which an authenticator, such as a phone, keeps the private half. Its owner signs in by signing a challenge. The
 * log holds the public half sealed, so that the erasure of the account makes it unreadable. Stream `passkey-{HMAC of the credential id}`: the
 * credential that a browser sends names its stream, and no credential can be added twice.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"
import type { Challenge } from "./PasskeyChallenge.ts"

const ID = /^[A-Za-z0-9_-]{43}$/u

/** Whether a text has the format of the id of a passkey. */
export const isId = (text: string): boolean => ID.test(text)

// events

export const PasskeyEvent = Schema.TaggedUnion({
  PasskeyAdded: {
    accountId: Schema.String,
    /** The credential's id, public key and transports, and the owner's name for it, sealed under the account's key. */
    sealedCredential: Schema.String,
    /** How often the authenticator says it signed. Always 0 where it does not count, as where passkeys are copied between devices. */
    counter: Schema.Int
  },
  /** It signed a challenge, which it can sign no second time. */
  PasskeyUsed: {
    /** SHA-256 of the challenge, base64url. */
    challengeHash: Schema.String,
    challengeEndsAt: Timestamp,
    counter: Schema.Int
  },
  PasskeyRemoved: {}
})
export type PasskeyEvent = typeof PasskeyEvent.Type

type Added = Omit<Extract<PasskeyEvent, { readonly _tag: "PasskeyAdded" }>, "_tag">

// state

export interface Known extends Added {
  readonly status: "added" | "removed"
  /** The challenges that it signed and that have not ended. */
  readonly signed: ReadonlyArray<Challenge>
}

export type Passkey = { readonly status: "absent" } | Known

/** Whether an authenticator that counts did not count on: another one may have a copy of its key. */
const isBehind = (counter: number, before: number): boolean => (counter > 0 || before > 0) && counter <= before

const evolve = (passkey: Passkey, event: PasskeyEvent, at: Timestamp): Passkey => {
  if (event._tag === "PasskeyAdded") {
    if (passkey.status !== "absent") throw new Error("A passkey is added once")
    const { _tag: _, ...added } = event
    return { status: "added", ...added, signed: [] }
  }
  if (passkey.status !== "added") throw new Error("A passkey is added first, and removed last")
  if (event._tag === "PasskeyRemoved") return { ...passkey, status: "removed" }
  const { challengeEndsAt: endsAt, challengeHash: hash, counter } = event
  const isSigned = passkey.signed.some((signed) => signed.hash === hash)
  if (at >= endsAt || isSigned || isBehind(counter, passkey.counter)) throw new Error("A passkey signs each challenge once, in time")
  return { ...passkey, counter, signed: [...passkey.signed.filter((signed) => at < signed.endsAt), { hash, endsAt }] }
}

export const Passkey: Decider<Passkey, PasskeyEvent> = {
  category: "passkey",
  codec: EventCodec.make(PasskeyEvent),
  initial: { status: "absent" },
  evolve
}

// decisions

/**
 * `unknown`: there is no such passkey, or it was removed. `expired`: the challenge ended, or is not this browser's. `signed`: the challenge
 * was signed before. `copied`: the authenticator did not count on. `invalid`: the signature, the page or the authenticator is not right.
 */
export const RefusalReason = Schema.Literals(["unknown", "expired", "signed", "copied", "invalid"])
export type RefusalReason = typeof RefusalReason.Type

const REASONS: Readonly<Record<RefusalReason, string>> = {
  unknown: "This passkey is not known here, or was removed",
  expired: "The passkey was asked for too long ago, or in another browser. Try again",
  signed: "This answer of the passkey was used already. Try again",
  copied: "The passkey was used elsewhere with the same count, so it may have been copied. Remove it, and sign in by mail",
  invalid: "The answer of the passkey is not valid for this service"
}

/** A passkey that does not sign in, or cannot be added. */
export class PasskeyRefused extends Schema.TaggedError<PasskeyRefused>()("PasskeyRefused", { reason: RefusalReason }) {
  override get message(): string {
    return REASONS[this.reason]
  }
}

/** The authenticator offered a credential that was added before, by this account or another. */
export class PasskeyKnown extends Schema.TaggedError<PasskeyKnown>()("PasskeyKnown", {}) {
  override get message(): string {
    return "This passkey was added before"
  }
}

/** There is no such passkey, it was removed, or it is another account's. */
export class PasskeyNotFound extends Schema.TaggedError<PasskeyNotFound>()("PasskeyNotFound", {}) {
  override get message(): string {
    return "The account has no such passkey"
  }
}

/** Adds a passkey whose credential nobody added before. */
export const add =
  (added: Added) =>
  (passkey: Passkey): Decision<PasskeyEvent, PasskeyKnown> =>
    passkey.status === "absent" ? Result.succeed([{ _tag: "PasskeyAdded", ...added }]) : Result.fail(new PasskeyKnown())

/** Uses a challenge up that the passkey signed. */
export const use =
  ({ endsAt, hash }: Challenge, counter: number) =>
  (passkey: Passkey, now: Timestamp): Decision<PasskeyEvent, PasskeyRefused> => {
    const refused = (reason: RefusalReason) => Result.fail(new PasskeyRefused({ reason }))
    if (passkey.status !== "added") return refused("unknown")
    if (endsAt <= now) return refused("expired")
    if (passkey.signed.some((signed) => signed.hash === hash)) return refused("signed")
    if (isBehind(counter, passkey.counter)) return refused("copied")
    return Result.succeed([{ _tag: "PasskeyUsed", challengeHash: hash, challengeEndsAt: endsAt, counter }])
  }

/** Removes a passkey for ever. */
export const remove =
  (accountId: string) =>
  (passkey: Passkey): Decision<PasskeyEvent, PasskeyNotFound> =>
    passkey.status === "added" && passkey.accountId === accountId
      ? Result.succeed([{ _tag: "PasskeyRemoved" }])
      : Result.fail(new PasskeyNotFound())
