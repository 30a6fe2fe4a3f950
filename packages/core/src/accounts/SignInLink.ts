/**
 * A link that is mailed to an address, to sign in with it once, within 15 minutes, in the browser that asked for it. The log holds hashes
 * of the link's secret and of the browser's. It holds the address sealed under the link's secret: only who has the mail can read it.
 * Stream `signIn-{id}`.
 */
import { hkdfSync } from "node:crypto"
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"
import * as Aead from "../vault/Aead.ts"
import * as Token from "./Token.ts"

export const PREFIX = "link_"

/** For how long a link can be used: 15 minutes, in milliseconds. */
export const LIFETIME = 15 * 60_000

// events

export const SignInEvent = Schema.TaggedUnion({
  SignInRequested: {
    /** SHA-256 of the link's secret, base64url. */
    secretHash: Schema.String,
    /** SHA-256 of the secret that the browser keeps, base64url. */
    browserHash: Schema.String,
    /** The address, sealed under the link's secret. */
    sealedAddress: Schema.String,
    /** The account that was opened at the sign-up, which the address may become that of. */
    provisional: Schema.NullOr(Schema.String),
    expiresAt: Timestamp
  },
  SignInUsed: {}
})
export type SignInEvent = typeof SignInEvent.Type

type Requested = Omit<Extract<SignInEvent, { readonly _tag: "SignInRequested" }>, "_tag">

// state

export type SignInLink = { readonly status: "absent" } | ({ readonly status: "requested" | "used" } & Requested)

const evolve = (link: SignInLink, event: SignInEvent, at: Timestamp): SignInLink => {
  switch (event._tag) {
    case "SignInRequested": {
      if (link.status !== "absent") throw new Error("A link is asked for once")
      const { _tag: _, ...requested } = event
      return { status: "requested", ...requested }
    }
    case "SignInUsed":
      if (link.status !== "requested" || at >= link.expiresAt) throw new Error("A link is used once, before its end")
      return { ...link, status: "used" }
  }
}

export const SignInLink: Decider<SignInLink, SignInEvent> = {
  category: "signIn",
  codec: EventCodec.make(SignInEvent),
  initial: { status: "absent" },
  evolve
}

// the address

const NONCE = new Uint8Array(Aead.NONCE)

/** The key of one link seals one text, so that its nonce can be constant. */
const keyOf = (id: string, secret: string): Aead.Key =>
  Aead.keyOf(new Uint8Array(hkdfSync("sha256", secret, id, "millrace/v1/sign-in-address", Aead.KEY)))

export const sealAddress = ({ id, secret }: Token.Token, address: string): string =>
  Aead.encrypt(keyOf(id, secret), NONCE, Buffer.from(id), Buffer.from(address)).toString("base64url")

/** Undefined if it was sealed under another secret, or changed. */
export const openAddress = ({ id, secret }: Token.Token, sealed: string): string | undefined =>
  Aead.decrypt(keyOf(id, secret), NONCE, Buffer.from(id), Buffer.from(sealed, "base64url"))?.toString()

// decisions

/** `unknown`: there is no such link. `browser`: another browser asked for it. `closed`: the account of the address was closed. */
export const RefusalReason = Schema.Literals(["unknown", "used", "expired", "browser", "closed"])
export type RefusalReason = typeof RefusalReason.Type

const REASONS: Readonly<Record<RefusalReason, string>> = {
  unknown: "This is no sign-in link of this service",
  used: "This sign-in link was used already",
  expired: "This sign-in link has expired",
  browser: "This sign-in link was asked for in another browser. Open it there, or ask for a new one here",
  closed: "The account of this address was closed"
}

/** A link that does not sign in. */
export class SignInRefused extends Schema.TaggedError<SignInRefused>()("SignInRefused", { reason: RefusalReason }) {
  override get message(): string {
    return REASONS[this.reason]
  }
}

/** Asks for a link under an unused id. */
export const request =
  (requested: Omit<Requested, "expiresAt">) =>
  (link: SignInLink, now: Timestamp): Decision<SignInEvent> => {
    if (link.status !== "absent") throw new Error("The id of a link exists already")
    return Result.succeed([{ _tag: "SignInRequested", ...requested, expiresAt: now + LIFETIME }])
  }

/** Uses a link up. Who does not know its secret learns nothing about it. The wrong browser leaves it usable. */
export const use =
  (secret: string, browser: string | undefined) =>
  (link: SignInLink, now: Timestamp): Decision<SignInEvent, SignInRefused> => {
    const refused = (reason: RefusalReason) => Result.fail(new SignInRefused({ reason }))
    if (link.status === "absent" || !Token.matches(link.secretHash, secret)) return refused("unknown")
    // First: the right browser has forgotten its secret by then, and would be told that it is another one
    if (link.status === "used") return refused("used")
    if (link.expiresAt <= now) return refused("expired")
    if (browser === undefined || !Token.matches(link.browserHash, browser)) return refused("browser")
    return Result.succeed([{ _tag: "SignInUsed" }])
  }
