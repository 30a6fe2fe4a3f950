/**
 * Every row, driven over HTTP: each bound from both sides, each type, each price to the thousandth. What is refused
 * names its field and costs nothing.
 */
import { Effect, Exit, Schedule, Scope } from "effect"
import { afterAll, describe, expect } from "vitest"
import { absent, accepted, type Case, type Input, least, refused } from "./Cases.ts"
import { hostWith, testing } from "./Host.ts"
import type { Answer } from "./Requests.ts"
import * as Requests from "./Requests.ts"
import type { Row } from "./Row.ts"
import { rows } from "./Rows.ts"

const CREDITS = 10_000

const scope = Scope.makeUnsafe()
/** One host for all rows: to start one takes longer than most tests here. Each test has accounts of its own, and asks about them alone. */
const host = Effect.runSync(Effect.cached(Scope.provide(hostWith({}), scope)))
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/** What a call costs by the row, in thousandths of a credit. */
const costOf = ({ price }: Row, { emails }: Input): number => {
  const quantity = price?.per === "email" && Array.isArray(emails) ? emails.length : 1
  return Math.round((price?.credits ?? 0) * 1000) * quantity
}

/** Status, code and message of an error object; its id is that of the answer. */
const errorOf = ({ status, headers, body }: Answer): { readonly status: number; readonly code: string; readonly message: string } => {
  const { error, ...rest } = JSON.parse(body)
  expect(rest).toEqual({})
  expect(error.request_id).toBe(headers.get("x-request-id"))
  return { status, code: error.code, message: error.message }
}

/** The envelope with an echo of the call: of its input all but the headers. */
const expectEnvelope = ({ method, path, parameters }: Row, { headers, body }: Answer, input: Input): void => {
  const { status, data, request, ...rest } = JSON.parse(body)
  expect(rest).toEqual({})
  expect(["success", "pending"]).toContain(status)
  expect(data).toBeTypeOf("object")
  const filled = path.replaceAll(/\{(\w+)\}/gu, (_, name: string) => encodeURIComponent(String(input[name])))
  const echo = Object.entries(input).filter(([name]) => !Object.hasOwn(parameters.header, name))
  expect(request).toEqual({
    id: headers.get("x-request-id"),
    method,
    path: filled,
    input: echo.length === 0 ? [] : Object.fromEntries(echo)
  })
}

/** Plain calls are answered directly, or like all others. */
type Way = "direct" | "ordinary"
/** The ways to send the calls of a row: only reads may be answered directly. */
const waysOf = ({ method }: Row): ReadonlyArray<Way> => (method === "GET" ? ["direct", "ordinary"] : ["ordinary"])

/** An account with so many credits, whose calls say what they did to it. */
const caller = Effect.fnUntraced(function* (row: Row, way: Way, credits = CREDITS) {
  const { open, balance, inbox, payment, ...urls } = yield* host
  const url = way === "direct" ? urls.url : urls.ordinaryUrl
  const { accountId, key } = yield* open(credits)
  /** The balance once nothing is held any more: the account hears of a job's end a moment later. */
  const settled = balance(accountId).pipe(
    Effect.repeat({ until: ({ held }) => held === 0, schedule: Schedule.spaced("20 millis"), times: row.makesJob ? 500 : 0 })
  )
  const maker = rows.find(({ key }) => key === row.madeBy)
  const made = Effect.gen(function* () {
    if (maker === undefined) return undefined
    const { body } = yield* Effect.promise(() => Requests.send(url, maker, least(maker).input, key))
    yield* Effect.repeat(balance(accountId), { until: ({ held }) => held === 0, schedule: Schedule.spaced("20 millis"), times: 500 })
    const { data } = JSON.parse(body)
    return String(data.id ?? data.job_id)
  })
  /** An inbox with a message, for what the call names of it. */
  const mailFor = Effect.fnUntraced(function* (asked: Input) {
    const { inboxId, messages } = yield* inbox(accountId)
    return {
      ...(asked["inbox"] === "the inbox" ? { inbox: inboxId } : {}),
      ...(asked["message"] === "the message" ? { message: messages[0] } : {})
    }
  })
  const send = Effect.fnUntraced(function* (name: string, asked: Input, sentKey: string | undefined) {
    const job = asked["job"] === "the job" ? { job: yield* made } : {}
    const mail = "inbox" in asked ? yield* mailFor(asked) : {}
    const paid = asked["payment"] === "the payment" ? { payment: yield* payment(accountId) } : {}
    const input = { ...asked, ...job, ...mail, ...paid }
    const before = yield* balance(accountId)
    const answer = yield* Effect.promise(() => Requests.send(url, row, input, sentKey))
    const after = yield* settled
    expect(after.held, name).toBe(0)
    return { answer, input, charged: before.available - after.available, balance: after.available }
  })
  const ownKey = row.authentication === "bearer" ? key : undefined
  return { send, call: ({ name, input }: Case) => send(name, input, ownKey) }
})

/** Under an idempotency key of its own, where it has one: a call under the key of another one does not run. */
const ofItsOwn = ({ input, name }: Case): Case =>
  "Idempotency-Key" in input ? { name, input: { ...input, "Idempotency-Key": crypto.randomUUID() } } : { name, input }

const forEach = <C extends Case, E>(cases: ReadonlyArray<C>, each: (one: C) => Effect.Effect<void, E>): Effect.Effect<void, E> =>
  Effect.forEach(cases, each, { discard: true })

describe.each(rows.flatMap((row) => waysOf(row).map((way) => ({ ...row, row, way }))))("$method $path, $way", ({ row, way }) => {
  testing(
    "accepts all input within its bounds, and charges its price",
    Effect.gen(function* () {
      const { call } = yield* caller(row, way)
      yield* forEach(
        accepted(row),
        Effect.fnUntraced(function* (one) {
          const { name } = one
          const { answer, input, charged, balance } = yield* call(ofItsOwn(one))
          const cost = costOf(row, input)
          expect({ name, status: answer.status, charged, refusal: answer.status < 300 ? "" : answer.body }).toEqual({
            name,
            status: row.status,
            charged: cost,
            refusal: ""
          })
          const told = [answer.headers.get("x-credits-charged"), answer.headers.get("x-credits-balance")]
          // A caller that saw the job end is told what it was charged; a file says nothing of credits
          const isTold = row.authentication === "bearer" && row.answer !== "bytes"
          expect(told, name).toEqual(isTold ? [`${cost / 1000}`, `${balance / 1000}`] : [null, null])
          if (row.answer === "envelope") expectEnvelope(row, answer, input)
        })
      )
    })
  )

  const refusals = refused(row)
  if (refusals.length > 0) {
    testing(
      "refuses all input outside its bounds, names the field, and is free",
      Effect.gen(function* () {
        const { call } = yield* caller(row, way)
        yield* forEach(
          refusals,
          Effect.fnUntraced(function* (one) {
            const { name, field } = one
            const { answer, charged } = yield* call(one)
            expect({ name, status: answer.status, charged }).toEqual({ name, status: 422, charged: 0 })
            const { code, message } = errorOf(answer)
            expect(code, name).toBe("invalid_request")
            // The field, or one of its items, and nothing else
            expect(message, name).toMatch(new RegExp(`^${field}(?:\\.\\d+)?: [^;]+(?:; ${field}(?:\\.\\d+)?: [^;]+)*$`, "u"))
            expect(answer.headers.get("x-credits-charged"), name).toBeNull()
          })
        )
      })
    )
  }

  const unknown = absent(row)
  if (unknown.length > 0) {
    testing(
      "answers 404 for what does not exist, and is free",
      Effect.gen(function* () {
        const { call } = yield* caller(row, way)
        yield* forEach(
          unknown,
          Effect.fnUntraced(function* (one) {
            const { answer, charged } = yield* call(one)
            expect([one.name, errorOf(answer), charged]).toMatchObject([one.name, { status: 404, code: "not_found" }, 0])
          })
        )
      })
    )
  }

  testing(
    row.authentication === "bearer" ? "asks for a key" : "asks for no key",
    Effect.gen(function* () {
      const { send } = yield* caller(row, way)
      const { name, input } = least(row)
      for (const key of [undefined, "", "mr_live_none"]) {
        const { answer, charged } = yield* send(name, input, key)
        expect(charged).toBe(0)
        if (row.authentication === "none") {
          expect(answer.status).toBe(row.status)
        } else {
          expect(errorOf(answer)).toMatchObject({ status: 401, code: "unauthorized" })
          expect(answer.headers.get("www-authenticate")).toBe("Bearer")
        }
      }
    })
  )

  const cost = costOf(row, least(row).input)
  if (cost > 0) {
    testing(
      "needs credits for its whole price, and accepts the last",
      Effect.gen(function* () {
        const poor = yield* caller(row, way, (cost - 1) / 1000)
        const refused = yield* poor.call(least(row))
        expect([errorOf(refused.answer), refused.charged]).toMatchObject([{ status: 402, code: "insufficient_credits" }, 0])
        const rich = yield* caller(row, way, cost / 1000)
        const { answer, charged, balance } = yield* rich.call(least(row))
        expect([answer.status, charged, balance]).toEqual([row.status, cost, 0])
      })
    )
  }
})

testing(
  "every row is served",
  Effect.gen(function* () {
    const { url } = yield* host
    const missing: Array<string> = []
    for (const row of rows) {
      const input = Object.fromEntries(Object.keys(row.parameters.path).map((name) => [name, "1"]))
      const answer = yield* Effect.promise(() => Requests.send(url, row, input))
      // Where there is something, it asks for a key or answers
      if (answer.status === 405 || (answer.status === 404 && errorOf(answer).code === "route_not_found")) missing.push(row.key)
    }
    expect(missing).toEqual([])
  })
)
