/** What may be told of an exchange over HTTP: where it went and how it broke. Never what was asked or answered. */
import type { HttpClientError, HttpClientRequest } from "effect/http"

/** Attributes of a span; without the path, which may hold what was asked for. */
export const attributesOf = ({ method, url }: HttpClientRequest.HttpClientRequest): Readonly<Record<string, unknown>> => {
  const { hostname, port, protocol } = new URL(url)
  return {
    "http.request.method": method,
    "server.address": hostname,
    "server.port": Number(port || (protocol === "https:" ? 443 : 80)),
    "url.scheme": protocol.slice(0, -1)
  }
}

/** The error's own message names the whole address. */
export const reasonOf = ({ reason }: HttpClientError.HttpClientError): string => `${reason._tag}: ${rootOf(reason.cause)}`

/** What happened on the wire: fetch itself says no more than that it failed. */
const rootOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return "no cause given"
  if (cause.cause instanceof Error) return rootOf(cause.cause)
  return cause instanceof AggregateError ? cause.errors.map(rootOf).join(", ") : cause.message
}
