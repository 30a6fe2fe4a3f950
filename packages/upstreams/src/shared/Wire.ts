/** Descriptions of an HTTP exchange for traces and errors: its host and its failure, never the request or the reply. */
import type { HttpClientError, HttpClientRequest } from "effect/http"

/** Attributes of a span, without the path, which may hold a caller's text. */
export const attributesOf = ({ method, url }: HttpClientRequest.HttpClientRequest): Readonly<Record<string, unknown>> => {
  const { hostname, port, protocol } = new URL(url)
  return {
    "http.request.method": method,
    "server.address": hostname,
    "server.port": Number(port || (protocol === "https:" ? 443 : 80)),
    "url.scheme": protocol.slice(0, -1)
  }
}

/** Omits the error's own message, which quotes the whole URL. */
export const reasonOf = ({ reason }: HttpClientError.HttpClientError): string => `${reason._tag}: ${rootOf(reason.cause)}`

/** The innermost cause: the message of `fetch` says only that it failed. */
const rootOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return "no cause given"
  if (cause.cause instanceof Error) return rootOf(cause.cause)
  return cause instanceof AggregateError ? cause.errors.map(rootOf).join(", ") : cause.message
}
