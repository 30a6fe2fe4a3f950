/** Bad input over HTTP, against the real server: a clear error, nothing billed, nothing lost. */
import { expect, test } from "vitest"
import {
  type Answer,
  ask,
  auditOf,
  BIN,
  type Call,
  call,
  GRAMMAR,
  header,
  Issued,
  newStore,
  openAccount,
  problemOf,
  readLog,
  serve,
  UNLIMITED
} from "./Server.ts"

interface Bad extends Call {
  readonly path: string
  readonly status: number
  readonly code: string
  /** What the message has to say. */
  readonly says: RegExp
}

const post = (body: string | Uint8Array, headers: Call["headers"] = {}): Call & { readonly path: string } => ({
  path: GRAMMAR,
  method: "POST",
  body,
  headers
})
const grammar = (body: unknown) => post(JSON.stringify(body))

const INVALID = { status: 422, code: "invalid_request" }
const NO_KEY = { status: 401, code: "unauthorized", says: /^Missing or invalid API key\.$/u }

const BAD: Readonly<Record<string, Bad>> = {
  "JSON that ends too soon": { ...post('{"text": "An app'), status: 422, code: "malformed_json", says: /not valid JSON/u },
  "no JSON at all": { ...post("text=An+apple"), status: 422, code: "malformed_json", says: /not valid JSON/u },
  "bytes that are not UTF-8": { ...post(Uint8Array.of(0x22, 0xff, 0xfe, 0x22)), status: 422, code: "malformed_json", says: /UTF-8/u },
  "JSON nested without end": { ...post("[".repeat(5_000) + "]".repeat(5_000)), status: 422, code: "malformed_json", says: /nested/u },
  "a body that is a list": { ...grammar([]), ...INVALID, says: /body: expected an object/u },
  "no body": { path: GRAMMAR, method: "POST", ...INVALID, says: /text: is required/u },
  "a form": {
    ...post("text=x", { "content-type": "application/x-www-form-urlencoded" }),
    status: 415,
    code: "unsupported_media_type",
    says: /application\/json/u
  },
  "a body of two megabytes": {
    ...grammar({ text: "x".repeat(2_000_000) }),
    status: 413,
    code: "payload_too_large",
    says: /larger than \d+ bytes/u
  },
  "a text that is too long": { ...grammar({ text: "x".repeat(50_001) }), ...INVALID, says: /text:.*50000/u },
  "an empty text": { ...grammar({ text: "" }), ...INVALID, says: /text:.*1/u },
  "a text that is a number": { ...grammar({ text: 7 }), ...INVALID, says: /text: expected string/u },
  "a field that is not known": {
    ...grammar({ text: "An apple.", tone: "kind", cost: 0 }),
    ...INVALID,
    says: /tone: is not a field.*cost: is not a field/u
  },
  "a language that is not known": {
    ...grammar({ text: "Een appel.", language: "xx-YY" }),
    ...INVALID,
    says: /language "xx-YY" is not supported/u
  },
  "too short a BIN": { path: "/api/v1/bin/45717", ...INVALID, says: /bin:/u },
  "too long a BIN": { path: "/api/v1/bin/457173600", ...INVALID, says: /bin:/u },
  "a BIN of letters": { path: "/api/v1/bin/abcdef", ...INVALID, says: /bin:/u },
  "a BIN that nobody has": { path: "/api/v1/bin/000000", status: 404, code: "not_found", says: /no such resource/u },
  "a limit that is no number": { path: BIN, headers: { "x-max-credits": "plenty" }, ...INVALID, says: /X-Max-Credits/u },
  "a limit below the price": {
    path: BIN,
    headers: { "x-max-credits": "0.499" },
    status: 422,
    code: "cost_exceeds_limit",
    says: /0\.5 credits.*0\.499 credits/u
  },
  "an idempotency key without end": { path: BIN, headers: { "idempotency-key": "k".repeat(256) }, ...INVALID, says: /Idempotency-Key/u },
  "a path that is not there": { path: "/api/v1/bin", status: 404, code: "route_not_found", says: /nothing at this path/u },
  "a method that is not taken": { path: BIN, method: "DELETE", status: 405, code: "method_not_allowed", says: /GET/u },
  "no key": { path: BIN, key: "", ...NO_KEY },
  "a key that is none": { path: BIN, key: "open-sesame", ...NO_KEY },
  "a key with a slip": { path: BIN, key: "mr_live_01m7ykd477z577dbnpmz7j9kdz_000000000000000000000000000000000000", ...NO_KEY }
}

test("every kind of bad input has its status, code and message, is free and writes nothing", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  const { account, key } = await openAccount(store, 10)
  const { key: readOnly } = await ask(Issued, ["keys", "issue", "--store", store, "--account", account, "--scope", "read"])
  const server = await serve(["--store", store], { env: UNLIMITED })
  const ids = new Set<string>()

  const check = (name: string, answer: Answer, { status, code, says }: Pick<Bad, "status" | "code" | "says">) => {
    const { message, request_id, ...error } = problemOf(answer)
    expect({ name, status: answer.status, code: error.code }).toEqual({ name, status, code })
    expect(message).toMatch(says)
    expect(message).not.toMatch(/\n|\bat \w+ \(|node:/u)
    expect(header(answer, "x-request-id")).toBe(request_id)
    expect(header(answer, "x-should-retry")).toBe("false")
    expect(answer.headers["x-credits-charged"]).toBe(undefined)
    ids.add(request_id)
  }
  for (const [name, { path, status, code, says, ...sent }] of Object.entries(BAD)) {
    const { key: sentKey = key, ...rest } = sent
    check(name, await call(`${server.url}${path}`, sentKey === "" ? rest : { ...rest, key: sentKey }), { status, code, says })
  }
  const scope = await call(`${server.url}${BIN}`, { key: readOnly })
  check("a key that may only read", scope, { status: 403, code: "insufficient_scope", says: /operations/u })
  expect(ids.size).toBe(Object.keys(BAD).length + 1)

  // All that is left of it is the lookup that found nothing: held, and given back
  const events = await readLog(store)
  const reserved = events.filter(({ type }) => type === "CreditReserved")
  expect(reserved.map(({ data }) => data["operation"])).toEqual(["bin.lookup"])
  expect(events.filter(({ type }) => type === "Refunded").map(({ data }) => [data["reservationId"], data["amount"]])).toEqual([
    [reserved[0]?.data["reservationId"], 500]
  ])
  const good = await call(`${server.url}${BIN}`, { key, headers: { "x-max-credits": "0.5" } })
  expect([good.status, header(good, "x-credits-balance")]).toEqual([200, "9.5"])
  await auditOf(store)
})

/** Seconds: hardly ever does one end while a test runs. */
const WINDOW = 999_999

test("calls above the rate are told when to come again, and are free", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  const { key } = await openAccount(store, 10)
  const server = await serve(["--store", store], { env: { MILLRACE_RATE_LIMIT: `3/${WINDOW}` } })
  const answers: Array<Answer> = []
  for (let i = 0; i < 5; i++) answers.push(await call(`${server.url}${BIN}`, { key }))

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429])
  const refused = answers.slice(3)
  // Windows follow each other from 1970 on
  const left = WINDOW - ((Date.now() / 1000) % WINDOW)
  for (const answer of refused) {
    expect(problemOf(answer)).toMatchObject({ code: "rate_limited", message: `More than 3 requests in ${WINDOW} seconds.` })
    const wait = Number(header(answer, "retry-after"))
    expect(wait).toBeGreaterThanOrEqual(left)
    expect(wait).toBeLessThan(left + 60)
    expect(header(answer, "ratelimit-policy")).toBe(`"burst";q=3;w=${WINDOW}`)
  }
  expect((await readLog(store)).filter(({ type }) => type === "CreditReserved")).toHaveLength(3)
})
