/** A browser with its cookies at a host of a test, and how a person signs in with it. */
import { Effect } from "effect"
import { expect } from "vitest"
import type { Call, Host } from "./Host.ts"

export const ADA = "ada@example.com"
export const SESSION = "__Host-millrace"
export const BROWSER = "__Host-millrace-browser"
const HERE = { "sec-fetch-site": "same-origin" }

// biome-ignore lint/suspicious/noExplicitAny: it is walked, not known
export type Json = any

/** A browser with its cookies. It says where a request comes from, as browsers do. */
export const browserAt = ({ call }: Pick<Host, "call">, userAgent = "Firefox") => {
  const jar = new Map<string, string>()
  const ask = Effect.fnUntraced(function* (path: string, { headers = {}, ...request }: Call = {}) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ")
    const sent = { ...HERE, "user-agent": userAgent, ...(cookie === "" ? {} : { cookie }), ...headers }
    const told = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined))
    const answer = yield* call(path, { ...request, headers: told })
    for (const set of answer.headers["set-cookie"] ?? []) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/u.exec(set) ?? []
      if (value === "" || /max-age=0/iu.test(set)) jar.delete(name)
      else jar.set(name, value)
    }
    return { ...answer, json: answer.json as Json }
  })
  const csrf = Effect.map(ask("/api/v1/sessions/current"), ({ json }) => ({ "x-csrf-token": String(json?.data?.csrf_token) }))
  return {
    jar,
    ask,
    csrf,
    signUp: (address = ADA) => ask("/api/v1/signup", { method: "POST", body: { address } }),
    askForLink: (address = ADA) => ask("/api/v1/sessions", { method: "POST", body: { address } }),
    follow: (token: string) => ask("/api/v1/sessions/link", { method: "POST", body: { token } }),
    current: ask("/api/v1/sessions/current"),
    /** Sends a request that changes something, with the token of the session. */
    change: (path: string, method: string, body?: object) =>
      Effect.flatMap(csrf, (headers) => ask(path, { method, headers, ...(body === undefined ? {} : { body }) }))
  }
}
export type Browser = ReturnType<typeof browserAt>

/** The token in the last mail. */
export const tokenIn = ({ mails }: Pick<Host, "mails">): string => /#(?<token>\S+)/u.exec(mails.at(-1)?.text ?? "")?.groups?.["token"] ?? ""

export const signedIn = Effect.fnUntraced(function* (at: Host, address = ADA, userAgent?: string) {
  const browser = browserAt(at, userAgent)
  yield* browser.askForLink(address)
  expect((yield* browser.follow(tokenIn(at))).status).toBe(201)
  return browser
})

export const codeOf = ({ json, status }: { readonly json: Json; readonly status: number }) => [status, json?.error?.code]
