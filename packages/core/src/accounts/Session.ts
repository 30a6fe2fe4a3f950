/**
 * The session of a person who signed in with a browser. The browser holds the secret in a cookie, the log only its hash. A session ends when
 * its owner ends it, when it was not used for a while, and at the latest at a fixed time. Stream `session-{id}`.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"
import * as Token from "./Token.ts"

export const PREFIX = "ses_"

const DAY = 24 * 3_600_000

/** A session that is not used for so long ends: 30 days, in milliseconds. */
export const IDLE = 30 * DAY
/** Every session ends after so long: 90 days, in milliseconds. */
export const LIFETIME = 90 * DAY
/** A use is written at most so often: once a day, in milliseconds. */
export const NOTED_EVERY = DAY

const ID = /^ses_[0-9A-HJKMNP-TV-Z]{26}$/u

/** Whether a text has the format of the id of a session. */
export const isId = (text: string): boolean => ID.test(text)

// events

/** How the person proved who they are. With `signUp` nothing is proved yet: the account has no verified address. */
export const Proof = Schema.Literals(["signUp", "mailLink", "passkey"])
export type Proof = typeof Proof.Type

/** `signedOut`: by the owner. `replaced`: the same browser signed in anew. `expired`: it was not used, or reached its end. */
export const EndReason = Schema.Literals(["signedOut", "replaced", "expired"])
export type EndReason = typeof EndReason.Type

export const SessionEvent = Schema.TaggedUnion({
  SessionOpened: {
    accountId: Schema.String,
    /** SHA-256 of the secret, base64url. */
    secretHash: Schema.String,
    proof: Proof,
    /** What was used as the proof, by its id: a link; of a sign-up, the link that was mailed, which is not used yet. */
    proofId: Schema.NullOr(Schema.String),
    /** The browser and the address of the client, sealed under the account's key. Null where neither is known. */
    sealedClient: Schema.NullOr(Schema.String),
    /** When it ends unless it is used before. */
    idleAt: Timestamp,
    /** When it ends in any case. */
    expiresAt: Timestamp
  },
  /** It was used: it ends at `idleAt` unless it is used before. Written at most once a day. */
  SessionUsed: { idleAt: Timestamp },
  SessionEnded: { reason: EndReason }
})
export type SessionEvent = typeof SessionEvent.Type

type Opening = Omit<Extract<SessionEvent, { readonly _tag: "SessionOpened" }>, "_tag">

// state

export interface Opened extends Opening {
  readonly status: "open" | "ended"
  readonly openedAt: Timestamp
  /** The last use that was written. */
  readonly usedAt: Timestamp
}

export type Session = { readonly status: "absent" } | Opened

const open = (session: Session): Opened => {
  if (session.status !== "open") throw new Error("A session is opened first, and ends once")
  return session
}

/** When a session ends unless it is used. */
export const endOf = ({ expiresAt, idleAt }: Pick<Opened, "expiresAt" | "idleAt">): Timestamp => Math.min(idleAt, expiresAt)

const evolve = (session: Session, event: SessionEvent, at: Timestamp): Session => {
  switch (event._tag) {
    case "SessionOpened": {
      if (session.status !== "absent") throw new Error("A session is opened once")
      const { _tag: _, ...opening } = event
      return { status: "open", ...opening, openedAt: at, usedAt: at }
    }
    case "SessionUsed": {
      const before = open(session)
      if (at >= endOf(before) || event.idleAt > before.expiresAt) throw new Error("A session is used before its end, which nothing moves")
      return { ...before, idleAt: event.idleAt, usedAt: at }
    }
    case "SessionEnded": {
      const before = open(session)
      if (event.reason === "expired" && at < endOf(before)) throw new Error("A session expires at its end, and not before")
      return { ...before, status: "ended" }
    }
  }
}

export const Session: Decider<Session, SessionEvent> = {
  category: "session",
  codec: EventCodec.make(SessionEvent),
  initial: { status: "absent" },
  evolve
}

/** Whether a session can be used. It cannot from its end on, whether or not that was written. */
export const isLive = (session: Session, now: Timestamp): session is Opened => session.status === "open" && now < endOf(session)

/** Whether a secret is the session's, and the session can be used. */
export const admits = (session: Session, secret: string, now: Timestamp): session is Opened =>
  session.status !== "absent" && Token.matches(session.secretHash, secret) && isLive(session, now)

/** Whether a use at this time is to be written. */
export const isNoteworthy = ({ usedAt }: Opened, now: Timestamp): boolean => now - usedAt >= NOTED_EVERY

// decisions

type Decided = Decision<SessionEvent>

/** Opens a session under an unused id. */
export const begin =
  (terms: Omit<Opening, "expiresAt" | "idleAt">) =>
  (session: Session, now: Timestamp): Decided => {
    if (session.status !== "absent") throw new Error("The id of a session exists already")
    return Result.succeed([{ _tag: "SessionOpened", ...terms, idleAt: now + IDLE, expiresAt: now + LIFETIME }])
  }

/** Notes a use, at most once a day. */
export const use = (session: Session, now: Timestamp): Decided =>
  Result.succeed(
    isLive(session, now) && isNoteworthy(session, now) ? [{ _tag: "SessionUsed", idleAt: Math.min(now + IDLE, session.expiresAt) }] : []
  )

/** Ends a session. Ending it again changes nothing. */
export const end =
  (reason: Exclude<EndReason, "expired">) =>
  (session: Session): Decided =>
    Result.succeed(session.status === "open" ? [{ _tag: "SessionEnded", reason }] : [])

/** Writes the end of a session that is past it. */
export const expire = (session: Session, now: Timestamp): Decided =>
  Result.succeed(session.status === "open" && endOf(session) <= now ? [{ _tag: "SessionEnded", reason: "expired" }] : [])
