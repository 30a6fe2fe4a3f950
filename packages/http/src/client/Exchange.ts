/** Builds the request of a call, and reads its answer. */
import { type Failure, NoAnswer, ofTerms, UnexpectedAnswer } from "./Failure.ts"
import { PREFIX, type Route } from "./Routes.ts"

/** Path, query and body fields together, as JSON has them. */
export type Fields = Readonly<Record<string, unknown>>

export interface CallOptions {
  /** The call runs once under this key, however often it is sent. A random key by default. */
  readonly idempotencyKey?: string
  /** The most that the call may cost, in credits. A more expensive call is refused before anything is charged. */
  readonly maxCredits?: number
  /** Seconds that the answer may wait for the end of its job. */
  readonly wait?: number
}

/** A success. */
export interface Reply<Data, Amount = number> {
  readonly data: Data
  /** Credits that this request cost: 0 for a replay, since the first request under the key was charged. */
  readonly charged: Amount
  /** Credits that are left; undefined where the server could not tell. */
  readonly balance: Amount | undefined
  readonly requestId: string
  /** Whether this is the kept answer to an earlier call under the same idempotency key. */
  readonly replayed: boolean
  /** Whether the call made or read a job that has not ended yet. */
  readonly pending: boolean
}

// out

export interface Outgoing {
  readonly method: string
  /** From the root of the server. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string | undefined
  /** Whether the answer is a file. */
  readonly isFile: boolean
}

/** Throws a `TypeError` if a path parameter is missing or cannot be part of a path. */
export const request = (
  { method, path, query, isFile }: Route,
  input: Fields,
  { idempotencyKey, maxCredits, wait }: CallOptions & { readonly idempotencyKey: string },
  apiKey: string | undefined
): Outgoing => {
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined))
  const take = (name: string): unknown => {
    const value = rest.get(name)
    rest.delete(name)
    return value
  }
  const place = path.replaceAll(/:(\w+)/gu, (_, name: string) => segment(name, take(name)))
  const search = new URLSearchParams()
  for (const name of method === "GET" ? [...rest.keys()] : query) {
    const value = take(name)
    for (const item of Array.isArray(value) ? value : value === undefined ? [] : [value]) search.append(name, String(item))
  }
  const body = rest.size === 0 ? undefined : JSON.stringify(Object.fromEntries(rest))
  return {
    method,
    target: `${PREFIX}${place}${search.size === 0 ? "" : `?${search}`}`,
    headers: {
      accept: isFile ? "*/*" : "application/json",
      "idempotency-key": quoted(idempotencyKey),
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...(maxCredits === undefined ? {} : { "x-max-credits": String(maxCredits) }),
      ...(wait === undefined ? {} : { prefer: `wait=${wait}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" })
    },
    body,
    isFile
  }
}

/** URLs resolve dots, escaped or not, so they would lead to another path. */
const segment = (name: string, value: unknown): string => {
  const text = value === undefined ? "" : String(value)
  if (text === "" || text === "." || text === "..") throw new TypeError(`The path needs another ${name} than ${JSON.stringify(value)}`)
  return encodeURIComponent(text)
}

/** A string of RFC 8941, section 3.3.3. */
const quoted = (key: string): string => `"${key.replaceAll(/["\\]/gu, "\\$&")}"`

// in

export interface Incoming {
  readonly status: number
  readonly header: (name: string) => string | undefined
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** The reply, or the failure. `now` in milliseconds since 1970. */
export const read = (
  { status, header, bytes }: Incoming,
  { isFile, idempotencyKey }: { readonly isFile: boolean; readonly idempotencyKey: string },
  now: number
): Reply<unknown> | Failure => {
  if (isFile && status === 200) {
    const requestId = header("x-request-id") ?? ""
    return { data: bytes, charged: 0, balance: undefined, requestId, replayed: false, pending: false }
  }
  const body = json(new TextDecoder().decode(bytes))
  if (status >= 200 && status < 300 && isObject(body) && "data" in body) {
    const { request } = body
    return {
      data: body.data,
      charged: amount(header("x-credits-charged")) ?? 0,
      balance: amount(header("x-credits-balance")),
      requestId: isObject(request) ? String(request["id"]) : "",
      replayed: header("idempotent-replayed") === "true",
      pending: body["status"] === "pending"
    }
  }
  const error = isObject(body) ? body["error"] : undefined
  const hint = header("x-should-retry")
  const context = {
    idempotencyKey,
    // Without the hint of the API, the status of a gateway decides
    retryable: hint === undefined ? [408, 429, 502, 503, 504].includes(status) : hint === "true",
    retryAfter: waitOf(header("retry-after"), now)
  }
  if (status < 400 || !isObject(error) || typeof error["code"] !== "string") {
    return new UnexpectedAnswer(`The answer, of status ${status}, is not one of this API.`, status, context)
  }
  return ofTerms({
    ...context,
    code: error["code"],
    message: String(error["message"]),
    status,
    requestId: String(error["request_id"]),
    credits: creditsOf(header)
  })
}

/** The failure of an attempt without an answer. `isLate`: it exceeded its time limit. */
export const noAnswer = (isLate: boolean, idempotencyKey: string, cause: unknown): NoAnswer =>
  new NoAnswer(
    isLate ? "There was no answer in time." : "The connection failed.",
    { idempotencyKey, retryable: true, retryAfter: undefined },
    { cause }
  )

const json = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const amount = (text: string | undefined): number | undefined => {
  const value = text === undefined || text.trim() === "" ? Number.NaN : Number(text)
  return Number.isFinite(value) ? value : undefined
}

const creditsOf = (header: Incoming["header"]) => {
  const [required, available, shortfall] = ["required", "available", "shortfall"].map((name) => amount(header(`x-credits-${name}`)))
  return required === undefined || available === undefined || shortfall === undefined ? undefined : { required, available, shortfall }
}

/** Milliseconds from `Retry-After`: seconds, or a time. RFC 9110, section 10.2.3. */
const waitOf = (text: string | undefined, now: number): number | undefined => {
  if (text === undefined) return undefined
  const wait = /^\s*\d+\s*$/u.test(text) ? Number(text) * 1_000 : Date.parse(text) - now
  return Number.isNaN(wait) ? undefined : Math.max(0, wait)
}
