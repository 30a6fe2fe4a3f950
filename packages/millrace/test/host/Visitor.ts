/** A browser's cookies at a host of a test, and the links that were mailed to it. */
import { Schema } from "effect"

const Body = Schema.Struct({
  data: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  error: Schema.optionalKey(Schema.Struct({ code: Schema.String, message: Schema.String }))
})

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly data: Readonly<Record<string, Schema.Json>>
  /** The code of a refusal. */
  readonly code: string | undefined
}

/** Asks the host at `origin` as a page of it does. */
export const visitorOf = (origin: string) => {
  const jar = new Map<string, string>()
  const ask = async (path: string, method = "GET", body?: object, headers: Record<string, string> = {}): Promise<Answer> => {
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: {
        "sec-fetch-site": "same-origin",
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/u.exec(cookie) ?? []
      if (value === "") jar.delete(name)
      else jar.set(name, value)
    }
    const { data = {}, error } = Schema.decodeUnknownSync(Body)(await response.json())
    return { status: response.status, headers: response.headers, data, code: error?.code }
  }
  const current = () => ask("/api/v1/sessions/current")
  return {
    ask,
    current,
    signUp: (address: string) => ask("/api/v1/signup", "POST", { address }),
    askForLink: (address: string) => ask("/api/v1/sessions", "POST", { address }),
    follow: (link: string) => ask("/api/v1/sessions/link", "POST", { token: link.split("#")[1] ?? "" }),
    /** Sends what changes something, with the token of the session. */
    change: async (path: string, method: string, body?: object) =>
      ask(path, method, body, { "x-csrf-token": String((await current()).data["csrf_token"]) })
  }
}

/** The link in the text of a mail. */
export const linkIn = (text = ""): string => /https?:\S+#link_\S+/u.exec(text)?.[0] ?? ""
