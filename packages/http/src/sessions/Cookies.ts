/**
 * The cookies. `__Host-` makes browsers refuse them from anything but this host over a secure connection, so that no other host of the
 * domain can plant one. Pages cannot read them.
 */
import { PasskeyChallenge, Session, SignInLink, Token } from "@millrace/core"
import { Redacted } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** Holds the token of the session. */
export const SESSION = "__Host-millrace"
/** Holds the secret that binds a mailed link to the browser that asked for it. */
export const BROWSER = "__Host-millrace-browser"
/** Holds the secret that binds a challenge to the browser that asked for it. */
export const PASSKEY = "__Host-millrace-passkey"

const options = (milliseconds: number) => ({ httpOnly: true, secure: true, sameSite: "lax", path: "/", maxAge: milliseconds }) as const

export const sessionOf = ({ cookies }: Request): string | undefined => cookies[SESSION]

const secretIn = ({ cookies }: Request, name: string): string | undefined => {
  const secret = cookies[name]
  return secret !== undefined && Token.isSecret(secret) ? secret : undefined
}

export const browserOf = (request: Request): string | undefined => secretIn(request, BROWSER)

export const passkeyOf = (request: Request): string | undefined => secretIn(request, PASSKEY)

export const withSession =
  (token: Redacted.Redacted<string>) =>
  (response: Response): Response =>
    HttpServerResponse.setCookieUnsafe(response, SESSION, Redacted.value(token), options(Session.LIFETIME))

export const withBrowser =
  (secret: Redacted.Redacted<string>) =>
  (response: Response): Response =>
    HttpServerResponse.setCookieUnsafe(response, BROWSER, Redacted.value(secret), options(SignInLink.LIFETIME))

export const withPasskey =
  (secret: Redacted.Redacted<string>) =>
  (response: Response): Response =>
    HttpServerResponse.setCookieUnsafe(response, PASSKEY, Redacted.value(secret), options(PasskeyChallenge.LIFETIME))

/** Makes the browser forget a cookie. */
export const without =
  (name: typeof SESSION | typeof BROWSER | typeof PASSKEY) =>
  (response: Response): Response =>
    HttpServerResponse.setCookieUnsafe(response, name, "", options(0))
