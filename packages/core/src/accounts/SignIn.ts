/**
 * Signing up and signing in by a link that is mailed to an address. Every address is answered and mailed alike, whether or not it has an
 * account: the same steps run, and only who reads its mail learns more.
 */
import { Aggregate, type EventStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Redacted } from "effect"
import { newSignInId } from "../Ids.ts"
import { RandomBytes } from "../vault/RandomBytes.ts"
import type { VaultFailure } from "../vault/Vault.ts"
import * as EmailAddress from "./EmailAddress.ts"
import { type MailNotConfigured, type MailNotSent, MailRelay } from "./MailRelay.ts"
import { InvalidEmail } from "./Registration.ts"
import { type Client, type NewSession, Sessions } from "./Sessions.ts"
import * as SignInLink from "./SignInLink.ts"
import { SignUps } from "./SignUps.ts"
import * as Token from "./Token.ts"

/** Who asks for a link. */
export interface Ask {
  readonly email: string
  /** The address of the page that takes the token of a link. */
  readonly linkOf: (token: string) => string
  /** How the host calls itself in the mail. */
  readonly service: string
}

/** What the browser keeps so that it, and no other, can use the link that was mailed. */
export interface Asked {
  readonly browser: Redacted.Redacted<string>
}

/** Who follows a link. */
export interface Follow {
  readonly token: string
  /** What the browser kept when it asked. */
  readonly browser: string | undefined
  /** The session token that the browser has, which the new session replaces. */
  readonly current: string | undefined
  readonly client: Client
}

type AskFailure = InvalidEmail | MailNotSent | MailNotConfigured | Aggregate.Failure

export class SignIn extends Context.Service<
  SignIn,
  {
    /** Mails a link to an address. */
    readonly ask: (ask: Ask, metadata?: Aggregate.Metadata) => Effect.Effect<Asked, AskFailure>
    /**
     * Signs up: opens an unverified account and a session of it, and mails a link to the address, which verifies the account. If the
     * address has an account, the link signs in to that one, and the new one ends.
     */
    readonly signUp: (
      ask: Ask & Pick<Follow, "current" | "client">,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Asked & NewSession, AskFailure | VaultFailure>
    /** Uses a link up, and opens a session for the account of its address. The first link of an address verifies its account. */
    readonly follow: (
      follow: Follow,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<NewSession & { readonly accountId: string }, SignInLink.SignInRefused | VaultFailure | Aggregate.Failure>
    /** Links whose streams this host cannot read: for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
  }
>()("@millrace/core/accounts/SignIn") {
  static readonly layer: Layer.Layer<SignIn, never, MailRelay | SignUps | Sessions | EventStore.EventStore> = Layer.effect(
    SignIn,
    Effect.suspend(() => make)
  )
}

/** The mail is the same for every address. */
const mailOf = (to: string, service: string, link: string) => ({
  to,
  subject: `Sign in to ${service}`,
  text: `Open this link to sign in to ${service}:

${link}

It works once, for 15 minutes, and only in the browser that asked for it.
If you did not ask for it, do nothing: without the link nobody can sign in with your address.
`
})

const make = Effect.gen(function* () {
  const relay = yield* MailRelay
  const signUps = yield* SignUps
  const sessions = yield* Sessions
  const random = yield* RandomBytes
  const links = yield* Aggregate.make(SignInLink.SignInLink)

  const mail = Effect.fnUntraced(function* (
    address: string,
    { linkOf, service }: Ask,
    provisional: string | null,
    metadata: Aggregate.Metadata | undefined
  ) {
    const token = { id: yield* newSignInId, secret: Token.newSecret(random) }
    const browser = Token.newSecret(random)
    const requested = {
      secretHash: Token.hashOf(token.secret),
      browserHash: Token.hashOf(browser),
      sealedAddress: SignInLink.sealAddress(token, address),
      provisional
    }
    yield* links.execute(token.id, SignInLink.request(requested), metadata)
    yield* relay.send(mailOf(address, service, linkOf(Redacted.value(Token.format(token))))).pipe(
      // The answer to a caller must not depend on the address
      Effect.catchIf(
        (error) => error._tag === "MailNotSent" && error.isAddressRefused,
        ({ message }) => Effect.logWarning("The mail relay refused an address for good", { reason: message })
      ),
      Effect.tapErrorTag("MailNotSent", ({ reason }) => Effect.logWarning("A sign-in link was not mailed", { reason }))
    )
    return { linkId: token.id, browser: Redacted.make(browser, { label: "Browser" }) }
  })

  const addressOf = Effect.fnUntraced(function* ({ email }: Ask) {
    yield* relay.configured
    return EmailAddress.normalise(email) ?? (yield* new InvalidEmail())
  })

  const ask: SignIn["Service"]["ask"] = Effect.fn("SignIn.ask")(function* (ask, metadata) {
    const { browser } = yield* mail(yield* addressOf(ask), ask, null, metadata)
    return { browser }
  })

  const signUp: SignIn["Service"]["signUp"] = Effect.fn("SignIn.signUp")(function* (ask, metadata) {
    const address = yield* addressOf(ask)
    const accountId = yield* signUps.provisional(address, metadata)
    const { browser, linkId } = yield* mail(address, ask, accountId, metadata)
    const opened = yield* sessions
      .open({ accountId, proof: "signUp", proofId: linkId, client: ask.client, current: ask.current }, metadata)
      .pipe(Effect.catchTag(["AccountNotFound", "AccountClosed"], Effect.die))
    return { ...opened, browser }
  })

  const follow: SignIn["Service"]["follow"] = Effect.fn("SignIn.follow")(function* ({ browser, client, current, token: text }, metadata) {
    const token = Token.parse(SignInLink.PREFIX, text)
    if (token === undefined) return yield* new SignInLink.SignInRefused({ reason: "unknown" })
    const { state: link } = yield* links.execute(token.id, SignInLink.use(token.secret, browser), metadata)
    const address = link.status === "absent" ? undefined : SignInLink.openAddress(token, link.sealedAddress)
    if (link.status === "absent" || address === undefined) return yield* Effect.die(new Error("A link that was used has its address"))
    const closed = () => Effect.fail(new SignInLink.SignInRefused({ reason: "closed" }))
    const accountId = yield* signUps
      .prove(address, link.provisional, metadata)
      .pipe(Effect.catchTags({ AccountClosed: closed, InvalidEmail: Effect.die }))
    if (link.provisional !== null && link.provisional !== accountId) yield* signUps.abandon(link.provisional, metadata)
    const opened = yield* sessions
      .open({ accountId, proof: "mailLink", proofId: token.id, client, current }, metadata)
      .pipe(Effect.catchTags({ AccountClosed: closed, AccountNotFound: Effect.die }))
    return { ...opened, accountId }
  })

  return SignIn.of({ ask, signUp, follow, refused: links.refused })
})
