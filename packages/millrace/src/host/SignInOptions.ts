/** How people sign up and sign in at a host: the options, and the layers that follow from these. */
import {
  type Ledger,
  MailNotSent,
  type MailOutcome,
  MailRelay,
  Millrace,
  type OutgoingMail,
  PublicAddress,
  type Registration,
  SignIn,
  type Vault
} from "@millrace/core"
import type { EventStore, StateStore } from "@millrace/event-sourcing"
import { SessionRoutes } from "@millrace/http"
import { Effect, Layer, Option } from "effect"
import * as MailRelaySettings from "../MailRelaySettings.ts"
import * as PublicUrl from "../PublicUrl.ts"
import * as SignInHome from "../SignInHome.ts"
import * as Given from "./Given.ts"
import { placeOf } from "./Throwable.ts"

export interface SignInOptions {
  /**
   * The address under which people reach this host, such as `https://app.example.com`. Mailed links lead there. Over plain HTTP, browsers
   * keep sessions of `localhost` only.
   */
  readonly publicUrl: string
  /**
   * What sends the links: a relay such as `smtp://name:password@relay.example.com:587`, or `smtps:` for TLS; a function; or a layer of
   * `MailRelay`.
   */
  readonly mailRelay: string | SendMail | Layer.Layer<MailRelay, unknown>
  /** The sender of mails by a relay that is an address: `no-reply` at the host of `publicUrl` by default. */
  readonly mailFrom?: string
  /** How the host calls itself in mails and on the sign-in page: the title of the API by default. */
  readonly service?: string
  /** The page that a browser opens once a link has signed it in, such as `/account`: the web tool by default, else `/`. */
  readonly home?: `/${string}`
}

/**
 * Sends a message of plain text to one address, within 15 seconds. It returns when the message was taken; also for an address that is
 * refused for good, since answers must not tell which addresses there are. When it throws, the caller of a sign-in is answered with 503. A
 * price alert whose mail may have arrived is not mailed again: throw an error with `refused: true` where the message surely was not taken.
 */
export type SendMail = (mail: OutgoingMail) => Promise<void> | void

export type { OutgoingMail }

/** Browsers refuse the cookies of sessions over plain HTTP, except from the machine itself. */
const isPublicUrl = (value: unknown): boolean => {
  const url = typeof value === "string" ? PublicUrl.kind.parse(value) : undefined
  return url !== undefined && (url.protocol === "https:" || PublicUrl.isLoopback(url))
}

const isHome = (value: unknown): boolean => typeof value === "string" && SignInHome.kind.parse(value) !== undefined

/** One line: it stands in the subject of mails. */
const isName = (value: unknown): boolean =>
  typeof value === "string" && /^[^\p{Cc}\p{Zl}\p{Zp}]{1,100}$/u.test(value) && value.trim() === value

export const SIGN_IN: Given.Rule = Given.within(
  "signIn",
  {
    publicUrl: {
      ...Given.rule("an address such as https://app.example.com, without a query; http for this machine only", isPublicUrl),
      secret: true
    },
    mailRelay: {
      ...Given.rule(
        `${MailRelaySettings.address.expected}, a function, or a layer`,
        (value) =>
          typeof value === "function" ||
          Layer.isLayer(value) ||
          (typeof value === "string" && MailRelaySettings.address.parse(value) !== undefined)
      ),
      secret: true
    },
    mailFrom: Given.rule(
      MailRelaySettings.sender.expected,
      (value) => typeof value === "string" && MailRelaySettings.sender.parse(value) !== undefined
    ),
    service: Given.rule("a name of one line, at most 100 characters", isName),
    home: Given.rule('a path of this host, such as "/account"', isHome)
  },
  (given) =>
    Given.needing("publicUrl", "mailRelay")(given) ??
    (given["mailFrom"] === undefined || typeof given["mailRelay"] === "string"
      ? undefined
      : "has mailFrom, but mailRelay is no address: what it is chooses the sender")
)

/** The rest is the time of the request in which the mail is sent. */
const TIME_LIMIT = "15 seconds"

/** What went wrong, without the words of the error: they may name the address. */
const reasonOf = (error: unknown): string => (error instanceof Error ? `mailRelay threw ${error.name}${placeOf(error)}` : "mailRelay threw")

const outcomeOf = (error: unknown): MailOutcome =>
  typeof error === "object" && error !== null && "refused" in error && error.refused === true ? "refused" : "unknown"

const calling = (sendMail: SendMail): Layer.Layer<MailRelay> =>
  Layer.succeed(MailRelay, {
    configured: Effect.void,
    send: (mail) =>
      Effect.tryPromise({
        try: async () => sendMail(mail),
        catch: (error) => new MailNotSent({ reason: reasonOf(error), outcome: outcomeOf(error) })
      }).pipe(
        Effect.timeoutOrElse({
          duration: TIME_LIMIT,
          orElse: () => Effect.fail(new MailNotSent({ reason: `mailRelay took more than ${TIME_LIMIT}` }))
        })
      )
  })

const relayOf = ({ mailFrom, mailRelay, publicUrl }: SignInOptions): Layer.Layer<MailRelay, unknown> => {
  if (typeof mailRelay === "function") return calling(mailRelay)
  if (typeof mailRelay === "object") return mailRelay
  const settings = {
    mailRelay: Option.fromUndefinedOr(MailRelaySettings.address.parse(mailRelay)),
    mailFrom: Option.fromUndefinedOr(mailFrom),
    publicUrl: Option.some(new URL(publicUrl))
  }
  return MailRelaySettings.layer(settings, false)
}

const nameOf = ({ service }: SignInOptions, title: string | undefined): string => service ?? title ?? "Millrace"

/** What sends mail, and where its links lead. `title`: of the API. */
export const mailing = (signIn: SignInOptions | undefined, title: string | undefined): Layer.Layer<MailRelay, unknown> => {
  if (signIn === undefined) return MailRelay.unconfigured
  const address = { url: Effect.succeed(new URL(signIn.publicUrl)), service: nameOf(signIn, title) }
  return Layer.merge(relayOf(signIn), Layer.succeed(PublicAddress, address))
}

/** Links by mail, sessions and sign-ups, if the host has them. */
export const layerOf = (
  signIn: SignInOptions | undefined
): Layer.Layer<never, never, EventStore.EventStore | StateStore.StateStore | Ledger | MailRelay | Registration | Vault.Vault> =>
  signIn === undefined ? Layer.empty : SignIn.layer.pipe(Layer.provideMerge(Millrace.sessions()))

/** The routes of sign-ups and sessions. `title`: of the API; `webTool`: where it is. */
export const routesOf = (
  signIn: SignInOptions,
  title: string | undefined,
  webTool: `/${string}` | undefined
): ReturnType<typeof SessionRoutes.layer> =>
  SessionRoutes.layer({
    publicUrl: Effect.succeed(new URL(signIn.publicUrl)),
    service: nameOf(signIn, title),
    home: signIn.home ?? webTool ?? "/"
  })
