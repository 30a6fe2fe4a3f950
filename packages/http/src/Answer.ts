/** An answer in JSON, before a server's own form of it: what a route decides, whichever way it is sent. */
import { HttpServerResponse } from "effect/http"

export interface Answer {
  readonly status: number
  /** By their names in lower case; without those of the body and those that all answers share, unless {@link withAll} added them. */
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string
}

const CONTENT_TYPE = "application/json"

export const responseOf = ({ body, headers, status }: Answer): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(body, { status, contentType: CONTENT_TYPE, headers })

/** An answer with all its headers, in the order in which {@link responseOf} and the headers that all answers share are sent. */
export const withAll = (answer: Answer, shared: Readonly<Record<string, string>>): Answer => ({
  ...answer,
  headers: {
    ...answer.headers,
    "content-type": CONTENT_TYPE,
    "content-length": String(Buffer.byteLength(answer.body)),
    ...shared
  }
})
