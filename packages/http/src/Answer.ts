/** An answer in JSON, before a server's own form of it: what a route decides, whichever way it is sent. */
import { HttpServerResponse } from "effect/http"

export interface Answer {
  readonly status: number
  /** By their names in lower case, without those of the body and those that all answers share. */
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string
}

const CONTENT_TYPE = "application/json"

export const responseOf = ({ body, headers, status }: Answer): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(body, { status, contentType: CONTENT_TYPE, headers })

/** The headers of an answer, those of its body and those that all answers share: what {@link responseOf} becomes in the end. */
export const headersOf = ({ body, headers }: Answer, shared: Readonly<Record<string, string>>): Readonly<Record<string, string>> => ({
  ...headers,
  "content-type": CONTENT_TYPE,
  "content-length": String(Buffer.byteLength(body)),
  ...shared
})
