/** The answer to a call of an operation, and what it tells about it. */

import { type Charge, Credits, type Money, type Operation } from "@millrace/core"
import type { Answer } from "./Answer.ts"
import * as Envelope from "./Envelope.ts"
import type { Exchange } from "./Exchange.ts"
import type { Input } from "./OperationInput.ts"
import { answerOf, type Failure, problemOf } from "./Problem.ts"
import type { Head } from "./RequestReport.ts"
import type { ServedOperation } from "./ServedOperation.ts"

/** Seconds after which a client may ask for a job that was just accepted. */
const POLL_AFTER = 1

export interface Answered {
  readonly reply: Charge.Reply
  readonly isPending: boolean
  /** The seconds that the answer could wait; undefined where it did not wait. */
  readonly waited: number | undefined
}

/** The answer of a call that did not wait. */
export const atOnce = (reply: Charge.Reply): Answered => ({
  reply,
  isPending: reply.job !== undefined || reply.retryAfter !== undefined,
  waited: undefined
})

/** Notes in the exchange what a call cost. */
export const note = (exchange: Exchange, reply: Charge.Reply): void => {
  if (reply.billed !== undefined) exchange.trialRemaining = reply.billed.trialRemaining
  exchange.charged = chargedOf(reply)
}

export const success = (
  { isPathSecret, operation, path, paths }: ServedOperation,
  { method, url }: Head,
  exchange: Exchange,
  echo: Input["echo"],
  { isPending, reply, waited }: Answered
): Answer => {
  const sent = {
    id: reply.requestId,
    method,
    path: isPathSecret ? path : (url.split(/[?#;]/u, 1)[0] ?? url),
    input: echo
  }
  return {
    status: operation.route.status,
    headers: {
      ...headersOf(reply, exchange),
      ...(isPending ? { "retry-after": String(reply.retryAfter ?? POLL_AFTER) } : {}),
      ...(reply.page === undefined ? {} : { link: linkOf(url, reply.page) }),
      ...(reply.cache === undefined ? {} : { "x-cache": reply.cache }),
      ...(waited === undefined ? {} : { "preference-applied": `wait=${waited}` }),
      ...trialHeaders(exchange)
    },
    body: Envelope.text(isPending ? "pending" : "success", paths.inText(reply.data), sent)
  }
}

/** The answer to a call that failed. Amounts are told in the host's words. */
export const failure = (error: Failure, exchange: Exchange, money: Money.Money): Answer => {
  if (error._tag === "TrialUsedUp") exchange.trialRemaining = 0
  const answer = answerOf(problemOf(error, money), exchange.id)
  return { ...answer, headers: { ...answer.headers, ...trialHeaders(exchange) } }
}

/** What every answer to an account on trial tells, whether the call succeeded or not. */
export const trialHeaders = ({ trialRemaining }: Exchange): Readonly<Record<string, string>> =>
  trialRemaining === undefined ? {} : { "x-trial-remaining": String(trialRemaining) }

/** The charge of this request. A replay costs nothing, so that the charges of all answers add up to what the account paid. */
export const chargedOf = ({ billed, replayed }: Charge.Reply): Credits.Credits | undefined =>
  billed === undefined ? undefined : replayed ? Credits.zero : billed.charged

const creditHeaders = ({ billed }: Charge.Reply, charged: Credits.Credits | undefined): Readonly<Record<string, string>> =>
  billed === undefined || charged === undefined
    ? {}
    : { "x-credits-charged": String(Credits.toDecimal(charged)), "x-credits-balance": String(Credits.toDecimal(billed.balance)) }

const headersOf = (reply: Charge.Reply, { charged, id }: Exchange): Readonly<Record<string, string>> => ({
  "cache-control": "private, no-store",
  ...creditHeaders(reply, charged),
  ...(reply.replayed ? { "x-request-id": reply.requestId, "idempotent-replayed": "true", "x-replay-request-id": id } : {})
})

/** The `Link` header of a page: its first, previous, next and last page (RFC 8288). `url` is that of the request. */
const linkOf = (url: string, { number, size, total }: Operation.Page): string => {
  const [path = "", search = ""] = url.split("?", 2)
  const last = Math.max(1, Math.ceil(total / size))
  const to = (page: number, rel: string): string => {
    const query = new URLSearchParams(search)
    query.set("page", String(page))
    query.set("per_page", String(size))
    return `<${path}?${query}>; rel="${rel}"`
  }
  return [
    to(1, "first"),
    ...(number > 1 ? [to(Math.min(number - 1, last), "prev")] : []),
    ...(number < last ? [to(number + 1, "next")] : []),
    to(last, "last")
  ].join(", ")
}
