/**
 * What all requests have in common, whichever way they are answered: an id, the headers that all answers share, a line in the log, metrics,
 * and the failure of a request that no route answered.
 */
import { Credits, Ids } from "@millrace/core"
import { Cause, Clock, Context, Effect, LogLevel, References } from "effect"
import type { Exchange } from "./Exchange.ts"
import { rateLimitHeaders } from "./Problem.ts"
import { Defect, ShuttingDown } from "./Refusal.ts"
import * as RequestMetrics from "./RequestMetrics.ts"

/** The logged status of a request whose client disconnected before the answer. */
export const CLIENT_CLOSED_REQUEST = 499

/** The head of a request. The names of its headers are in lower case. */
export interface Head {
  readonly method: string
  /** The path and the query. */
  readonly url: string
  readonly headers: Readonly<Record<string, string | undefined>>
}

export interface RequestReport {
  /** Names a request that arrived. */
  readonly begin: (head: Pick<Head, "headers">) => Exchange
  readonly measure: RequestMetrics.RequestMetrics
  /** The line in the log about an answered request. */
  readonly log: (exchange: Exchange, method: string, status: number) => Effect.Effect<void>
}

export const make: Effect.Effect<RequestReport> = Effect.gen(function* () {
  const ids = yield* Ids
  const clock = yield* Clock.Clock
  return {
    begin: (head) => ({ id: ids.uuid(), startedAt: clock.currentTimeMillisUnsafe(), correlationId: correlationIdOf(head) }),
    measure: yield* RequestMetrics.make,
    log: (exchange, method, status) => log(exchange, method, status, clock.currentTimeMillisUnsafe())
  }
})

const CORRELATION_ID = /^[\w\-=]{1,255}$/u

/** The name that the client gave its request, where it is one. */
const correlationIdOf = ({ headers }: Pick<Head, "headers">): string | undefined => {
  const inbound = headers["x-request-id"]
  return inbound !== undefined && CORRELATION_ID.test(inbound) ? inbound : undefined
}

/** `isClosing`: the server is about to end. Otherwise a client could keep it from ending. */
export const sharedHeaders = ({ id, rate }: Exchange, isClosing: boolean): Readonly<Record<string, string>> => ({
  "x-request-id": id,
  "x-content-type-options": "nosniff",
  ...(rate === undefined ? {} : rateLimitHeaders(rate)),
  ...(isClosing ? { connection: "close" } : {})
})

/** Whether lines about requests are logged in a context. */
export const isLogged = (context: Context.Context<never>): boolean =>
  !LogLevel.isGreaterThan(Context.get(context, References.MinimumLogLevel), "Info")

const log = (exchange: Exchange, method: string, status: number, now: number): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logInfo("request"), {
    method,
    route: exchange.route ?? "unmatched",
    status,
    durationMs: now - exchange.startedAt,
    requestId: exchange.id,
    ...(exchange.correlationId === undefined ? {} : { correlationId: exchange.correlationId }),
    ...(exchange.accountId === undefined ? {} : { accountId: exchange.accountId }),
    ...(exchange.charged === undefined ? {} : { charged: Credits.toDecimal(exchange.charged) })
  })

/** Why a route that was found gave no answer: it was ended from outside, or has a bug. */
export const failureOf = (cause: Cause.Cause<unknown>): ShuttingDown | Defect =>
  Cause.hasInterruptsOnly(cause) ? new ShuttingDown() : new Defect()

export const logDefect = (cause: Cause.Cause<unknown>, { id }: Exchange): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logError("A request failed", cause), { requestId: id })
