/**
 * The name of this machine that a browser uses. Where people reach a server on their own machine, they may call it `localhost` or
 * `127.0.0.1`. To a browser these are two sites with cookies and passkeys of their own, so that links must lead to the one that asked.
 */
import type { HttpServerRequest } from "effect/http"

const NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * The address under which people reach this server. A request decides it only between names of this machine, so that nobody can have a link
 * lead elsewhere.
 */
export const baseOf = (publicUrl: URL, { headers }: HttpServerRequest.HttpServerRequest): URL => {
  const asked = URL.parse(`${publicUrl.protocol}//${headers["host"] ?? ""}`)
  if (asked === null || !NAMES.has(publicUrl.hostname) || !NAMES.has(asked.hostname) || asked.port !== publicUrl.port) return publicUrl
  const base = new URL(publicUrl)
  base.hostname = asked.hostname
  return base
}
