/**
 * The two cookies. `__Host-` makes browsers refuse them from anything but this host over a secure connection, so that no other host of the
 * domain can plant one. Pages cannot read them.
 */
import { Session, SignInLink, Token } from "@millrace/core"
import { Redacted } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** Holds the token of the session. */
export const SESSION = "__Host-millrace"
/** Holds the secret that binds a mailed link to the browser that asked for it. */
export const BROWSER = "__Host-millrace-browser"

const options = (milliseconds: number) => ({ httpOnly: true, secure: true, sameSite: "lax", path: "/", maxAge: milliseconds }) as const

export const sessionOf = ({ cookies }: Request): string | undefined => cookies[SESSION]

export const browserOf = ({ cookies }: Request): string | undefined => {
  const secret = cookies[BROWSER]
  return secret !== undefined && Token.isSecret(secret) ? secret : undefined
}

export const withSession =
  (token: Redacted.Redacted<string>) =>
  (response: Response): Response =>
    HttpServerResponse.setCookieUnsafe(response, SESSION, Redacted.value(token), options(Session.LIFETIME))

export const withBrowser =
  (secret: Redacted.Redacted<string>) =>
  (response: Response): Response =>
    HttpServerResponse.setCookieUnsafe(response, BROWSER, Redacted.value(secret), options(SignInLink.LIFETIME))

/** Makes the browser forget a cookie. */
export const without =
  (name: typeof SESSION | typeof BROWSER) =>
  (response: Response): Response =>
    HttpServerResponse.setCookieUnsafe(response, name, "", options(0))
