/** The headers of requests and answers, for the documentation. */

import { Account } from "@millrace/core"

/** The description of a header. */
interface Header {
  readonly description: string
  readonly schema: Readonly<Record<string, unknown>>
  readonly example: string | number | boolean
}

/** The request id of all examples. */
export const EXAMPLE_ID = "0192f3a0-6c1e-7b2a-9d4e-3f5a7c9b1d2e"

const text = (description: string, example: string, schema: Header["schema"] = {}): Header => ({
  description,
  schema: { type: "string", ...schema },
  example
})

const credits = (description: string, example: number): Header => ({ description, schema: { type: "number", minimum: 0 }, example })

export const RESPONSE_HEADERS = {
  "X-Request-Id": text(
    "The id of the request, equal to `request.id` or `error.request_id`. A replay has the id of the first call.",
    EXAMPLE_ID,
    { format: "uuid" }
  ),
  "Cache-Control": text("No cache may store an answer.", "private, no-store"),
  "X-Credits-Charged": credits("What this request cost; 0 for a replay, whose first request was charged.", 0.5),
  "X-Credits-Balance": credits("What is free to be spent now.", 199.5),
  "X-Trial-Remaining": {
    description: "Calls that remain of the account's trial. Absent once its address was verified, or it was granted credits.",
    schema: { type: "integer", minimum: 0, maximum: Account.TRIAL_SLOTS },
    example: 7
  },
  "Idempotent-Replayed": {
    description: "`true` if the answer repeats that of an earlier call under the same Idempotency-Key.",
    schema: { type: "boolean", const: true },
    example: true
  },
  "X-Replay-Request-Id": text("Only in a replay: the id of this request.", "0192f3a1-02b4-7c55-8e21-6a9d0c4f7b18", { format: "uuid" }),
  "RateLimit-Policy": text("Requests (`q`) in a window of seconds (`w`).", '"burst";q=60;w=60'),
  RateLimit: text("Requests that remain (`r`), and seconds until the window ends (`t`).", '"burst";r=42;t=18'),
  "X-Should-Retry": { description: "Whether the same request may succeed later.", schema: { type: "boolean" }, example: true },
  "Retry-After": { description: "Seconds to wait before the next attempt.", schema: { type: "integer", minimum: 1 }, example: 5 },
  "WWW-Authenticate": text("RFC 6750.", "Bearer"),
  Allow: text("The methods that the path takes.", "GET"),
  "Preference-Applied": text("The longest time, in seconds, that the answer waited.", "wait=20"),
  "X-Cache": text(
    "`hit`: the answer made no request to the service behind the operation, which allows its answers to be kept for a while. The call is charged all the same.",
    "miss",
    { enum: ["hit", "miss"] }
  ),
  ETag: text("Identifies the bytes of the file.", '"3f5a7c9b1d2e"'),
  "Accept-Ranges": text("The client may request parts of the file.", "bytes", { const: "bytes" }),
  "Content-Disposition": text(
    "Tells the client to save the file under this name.",
    'attachment; filename="job_01JD7X2M9G4YQ0V5Z8K3T6W1RB.mp3"'
  ),
  "Content-Range": text("Which part of the file this is.", "bytes 0-1023/146515"),
  "X-Credits-Required": credits("What the call needs. Beside `insufficient_credits` only, as are the two others.", 5),
  "X-Credits-Available": credits("What the account has.", 1.5),
  "X-Credits-Shortfall": credits("What is missing.", 3.5)
} as const satisfies Record<string, Header>

export type ResponseHeader = keyof typeof RESPONSE_HEADERS

const ALWAYS: ReadonlyArray<ResponseHeader> = ["X-Request-Id", "Cache-Control"]
const RATE: ReadonlyArray<ResponseHeader> = ["RateLimit-Policy", "RateLimit"]

/** The headers of every answer. */
export const systemHeaders = ALWAYS

/** The headers of a success. */
export const successHeaders = (isPublic: boolean): ReadonlyArray<ResponseHeader> => [
  ...ALWAYS,
  ...RATE,
  ...(isPublic
    ? []
    : (["X-Credits-Charged", "X-Credits-Balance", "X-Trial-Remaining", "Idempotent-Replayed", "X-Replay-Request-Id"] as const))
]

const BY_STATUS: Readonly<Record<number, ReadonlyArray<ResponseHeader>>> = {
  401: ["WWW-Authenticate"],
  402: ["X-Credits-Required", "X-Credits-Available", "X-Credits-Shortfall", "X-Trial-Remaining"],
  403: ["WWW-Authenticate"],
  405: ["Allow"],
  409: ["Retry-After"],
  416: ["Content-Range"],
  429: ["Retry-After", ...RATE],
  503: ["Retry-After"]
}

/** The headers of answers that make or read a job. */
export const jobHeaders: ReadonlyArray<ResponseHeader> = ["Retry-After", "Preference-Applied"]

/** The headers of answers that may wait. */
export const waitHeaders: ReadonlyArray<ResponseHeader> = ["Preference-Applied"]

/** The headers of answers that may come from a cache. */
export const cacheHeaders: ReadonlyArray<ResponseHeader> = ["X-Cache"]

/** The headers of a download. */
export const fileHeaders: ReadonlyArray<ResponseHeader> = [...ALWAYS, ...RATE, "ETag", "Accept-Ranges", "Content-Disposition"]

/** The headers of an error. */
export const errorHeaders = (status: number): ReadonlyArray<ResponseHeader> => [...ALWAYS, "X-Should-Retry", ...(BY_STATUS[status] ?? [])]

/** The headers of requests, all optional. */
export const REQUEST_HEADERS = {
  IdempotencyKey: {
    name: "Idempotency-Key",
    ...text(
      "Runs the call once: a request that is sent again under the same key within 24 hours gets the first success again, and is charged once. A string of RFC 8941, quoted or not.",
      "order-4711",
      { minLength: 1, maxLength: 255 }
    )
  },
  MaxCredits: {
    name: "X-Max-Credits",
    ...credits("The most that the call may cost. A call that would cost more is refused with 422 before anything is held.", 10)
  },
  Prefer: {
    name: "Prefer",
    ...text(
      "`wait=20`: wait up to 20 seconds for the end of the job, or for what the operation waits for. The longest wait is 150 seconds. RFC 7240.",
      "wait=20"
    )
  },
  Range: { name: "Range", ...text("One part of the file. RFC 9110, section 14.", "bytes=0-1023") },
  IfNoneMatch: { name: "If-None-Match", ...text("The ETag of the client's copy.", '"3f5a7c9b1d2e"') },
  RequestId: {
    name: "X-Request-Id",
    ...text("The client's own id for the request. It is written to the server's log only.", "checkout-17", {
      pattern: "^[\\w\\-=]{1,255}$"
    })
  },
  TraceParent: { name: "traceparent", ...text("W3C Trace Context.", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") }
} as const

export type RequestHeader = keyof typeof REQUEST_HEADERS

/** The properties of an operation that decide which headers its requests have. */
export interface Nature {
  readonly isPublic: boolean
  /** It honours `Prefer: wait`. A job does. */
  readonly waits: boolean
  readonly isFile: boolean
}

export const requestHeaders = ({ isPublic, waits, isFile }: Nature): ReadonlyArray<RequestHeader> => [
  ...(isPublic || isFile ? [] : (["IdempotencyKey", "MaxCredits"] as const)),
  ...(waits ? (["Prefer"] as const) : []),
  ...(isFile ? (["Range", "IfNoneMatch"] as const) : []),
  "RequestId",
  "TraceParent"
]
