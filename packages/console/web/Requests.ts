/**
 * All requests of the tool. It sends a session's CSRF token, or the key that its user pasted. The key is kept in the memory of this page
 * only: a reload forgets it.
 */

/** How the tool is signed in. */
export type Access =
  | { readonly by: "nobody" }
  | { readonly by: "key"; readonly key: string }
  | { readonly by: "session"; readonly csrf: string }

export interface Sent {
  readonly method: string
  /** From the root of the server, with its query. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** An answer that came: a success or a refusal. */
export interface Answer {
  readonly status: number
  readonly ok: boolean
  readonly headers: Headers
  /** The JSON value, or undefined for a file. */
  readonly json: unknown
  /** The bytes of a file. */
  readonly file: Blob | undefined
  /** Milliseconds from sending to the whole answer. */
  readonly took: number
}

/** A refusal as the API words it, or that the server could not be reached. */
export class Refused extends Error {
  readonly code: string
  readonly status: number
  constructor(code: string, message: string, status: number) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** What was thrown, as a refusal. */
export const refusedBy = (error: unknown): Refused => (error instanceof Refused ? error : new Refused("unknown", String(error), 0))

let access: Access = { by: "nobody" }
const listeners = new Set<() => void>()

export const currentAccess = (): Access => access

/** Changes how the tool is signed in, and tells those who listen. */
export const signIn = (next: Access): void => {
  access = next
  for (const listener of listeners) listener()
}

/** Calls `listener` after each change of how the tool is signed in. Returns what ends that. */
export const onAccess = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const SAFE = new Set(["GET", "HEAD"])

/** The headers that prove who calls. */
export const proof = (method: string): Readonly<Record<string, string>> => {
  if (access.by === "key") return { Authorization: `Bearer ${access.key}` }
  return access.by === "session" && !SAFE.has(method) ? { "X-CSRF-Token": access.csrf } : {}
}

/** Where the session of this browser is read, with its token. */
export const SESSION = "/api/v1/sessions/current"

/** Takes up the session that this browser has, if it has one. A newer session, from another tab, has another token. */
export const takeUpSession = async (): Promise<void> => {
  const answer = await sendOnce({ method: "GET", path: SESSION })
  const data = (answer.json as { data?: { csrf_token?: string } } | undefined)?.data
  if (answer.ok && data?.csrf_token !== undefined) signIn({ by: "session", csrf: data.csrf_token })
}

/** Sends a request, and answers whatever the server did. Throws {@link Refused} only where no answer came. */
export const send = async (sent: Sent): Promise<Answer> => {
  const answer = await sendOnce(sent)
  if (access.by !== "session" || answer.status !== 403 || refusalOf(answer).code !== "cross_site_request") return answer
  await takeUpSession()
  return sendOnce(sent)
}

const sendOnce = async (sent: Sent): Promise<Answer> => {
  const sentBy = access
  // A key goes alone, so that what it may not do is refused even in a browser with a session
  const answer = await transfer(
    { ...sent, headers: { ...proof(sent.method), ...sent.headers } },
    access.by === "key" ? "omit" : "same-origin"
  )
  // The answer to who was signed in before says nothing of who is signed in now
  if (answer.status === 401 && access.by !== "nobody" && access === sentBy) signIn({ by: "nobody" })
  return answer
}

/** Sends a request as it is, and answers whatever the server did. Throws {@link Refused} only where no answer came. */
export const transfer = async ({ body, headers, method, path, signal }: Sent, credentials: "omit" | "same-origin"): Promise<Answer> => {
  const from = performance.now()
  const response = await fetch(path, {
    method,
    credentials,
    headers: {
      Accept: "application/json, */*",
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...headers
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal })
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error
    throw new Refused("unreachable", "The server could not be reached. Check your connection and try again.", 0)
  })
  const isJson = (response.headers.get("content-type") ?? "").includes("json")
  const json = isJson ? await response.json() : undefined
  const file = isJson || response.status === 204 ? undefined : await response.blob()
  return { status: response.status, ok: response.ok, headers: response.headers, json, file, took: performance.now() - from }
}

/** The refusal that an answer contains. */
export const refusalOf = ({ json, status }: Answer): Refused => {
  const { code = "unknown", message = `The server answered with status ${status}.` } =
    (json as { error?: { code?: string; message?: string } } | undefined)?.error ?? {}
  return new Refused(code, message, status)
}

/** Sends a request and returns the data of its success. Throws {@link Refused} for every refusal. */
export const ask = async <Data>(sent: Sent): Promise<Data> => dataOf<Data>(await send(sent))

/** The data of a success. Throws {@link Refused} for every refusal. */
export const dataOf = <Data>(answer: Answer): Data => {
  if (!answer.ok) throw refusalOf(answer)
  const json = answer.json as { data?: Data } | undefined
  return (json !== undefined && "data" in json ? json.data : json) as Data
}

/** Reads data. */
export const read = <Data>(path: string, signal?: AbortSignal): Promise<Data> =>
  ask({ method: "GET", path, ...(signal === undefined ? {} : { signal }) })
