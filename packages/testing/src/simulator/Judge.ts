/** Holds what everybody was told against what is in the log. */
import { hash } from "node:crypto"
import { type Account, type Charge, Decisions, type EventOf, Lots, PricePlan } from "@millrace/core"
import { type EventStore, StreamName } from "@millrace/event-sourcing"
import { Cause, Exit, HashMap, Option } from "effect"
import { invariants } from "../Invariants.ts"
import type { Grant } from "./Administrators.ts"
import { type Call, tagOf } from "./Callers.ts"
import * as Desk from "./Desk.ts"
import type { Faults } from "./Faults.ts"
import type { Told } from "./JobCallers.ts"
import { judgeAccepted, judgeActs, judgeJobs, judgeTidings } from "./JobJudge.ts"
import type { Attempted } from "./JobUpstream.ts"
import { BUG, type Delivery } from "./Weather.ts"
import type { Arrival, Witness } from "./Witness.ts"
import type { Process } from "./World.ts"

export interface Evidence {
  readonly witness: Witness
  readonly calls: ReadonlyArray<Call>
  readonly grants: ReadonlyArray<Grant>
  readonly deliveries: ReadonlyArray<Delivery>
  readonly faults: Faults
  /** Hosts that lived to the end. */
  readonly survived: ReadonlySet<Process>
  /** Reservations for which it was written down that they shall cost nothing. */
  readonly promised: ReadonlySet<string>
  /** The whole log. */
  readonly log: ReadonlyArray<EventStore.RecordedEvent>
  readonly attempts: ReadonlyArray<Attempted>
  readonly tidings: ReadonlyArray<Told>
  /** When faults ended, and how many events were in the log then; undefined until then. */
  readonly calm: { readonly at: number; readonly place: number } | undefined
  /** When all is looked at. */
  readonly end: number
  /** Whose documents can still be opened. */
  readonly keys: ReadonlySet<string>
}

type Report = (what: string) => void

/** A reservation with all that became of it. */
interface Reservation {
  readonly stream: string
  readonly hold: EventOf<"CreditReserved">
  readonly place: number
  readonly at: number
  end?: Arrival
  success?: EventOf<"OperationSucceeded">
  /** Charged and not given back, but out of goodwill. */
  net: number
}

export class Ledgers {
  readonly byId = new Map<string, Reservation>()
  readonly byRequest = new Map<string, Array<Reservation>>()

  constructor(arrivals: ReadonlyArray<Arrival>) {
    for (const arrival of arrivals) {
      const { event, at, place, stream } = arrival
      if (event._tag === "CreditReserved") {
        const made: Reservation = { stream, hold: event, place, at, net: 0 }
        this.byId.set(event.reservationId, made)
        this.byRequest.set(event.requestId, [...(this.byRequest.get(event.requestId) ?? []), made])
      }
      const known = "reservationId" in event ? this.byId.get(event.reservationId) : undefined
      if (known === undefined) continue
      if (event._tag === "OperationSucceeded") Object.assign(known, { end: arrival, success: event, net: event.charged })
      if (event._tag === "Refunded" && event.stage === "reserved") known.end = arrival
      if (event._tag === "Refunded" && event.stage === "settled" && event.reason !== "goodwill") known.net -= event.amount
    }
  }

  of(requestId: string): ReadonlyArray<Reservation> {
    return this.byRequest.get(requestId) ?? []
  }
}

const planCodec = PricePlan.PricePlan.codec

/** Each version of the prices, and its place in the log. */
type Plan = ReadonlyArray<PricePlan.PricePlanEvent & { readonly place: number }>

const published = (log: ReadonlyArray<EventStore.RecordedEvent>): Plan =>
  log.flatMap(({ stream, type, data }, i) =>
    StreamName.category(stream) === PricePlan.PricePlan.category ? [{ ...planCodec.decode(type, data), place: i + 1 }] : []
  )

/** All that is wrong once everything has come to rest. */
export const verdict = (evidence: Evidence): ReadonlyArray<string> => {
  const found: Array<string> = []
  const report: Report = (what) => void found.push(what)
  const { witness, calls, grants, log } = evidence
  for (const { stream, revision, rule, detail } of invariants(witness.all)) report(`${stream} ${revision}: ${rule}: ${detail}`)
  const ledgers = new Ledgers(witness.arrivals)
  for (const { hold, end, stream } of ledgers.byId.values())
    if (end === undefined) report(`${stream}: the hold ${hold.reservationId} of ${hold.requestId} has no end, due at ${hold.expiresAt}`)
  const plan = published(log)
  for (const call of calls) judge(call, evidence, ledgers, plan, report)
  keys(calls, ledgers, report)
  minted(witness.arrivals, grants, report)
  judgeJobs(evidence, ledgers, report)
  judgeTidings(evidence, ledgers, report)
  return found
}

/** Errors after which a call may have been charged: a retry under its key tells. */
const judge = (call: Call, evidence: Evidence, ledgers: Ledgers, plan: Plan, report: Report): void => {
  const { requestId, intent, told, process, hungUp } = call
  const survived = evidence.survived.has(process)
  const own = ledgers.of(requestId)
  const successes = own.filter(({ success }) => success !== undefined)
  const net = own.reduce((sum, reservation) => sum + reservation.net, 0)
  const wrong: Report = (what) => report(`${requestId}: ${what}`)
  if (successes.length > 1) wrong(`charged ${successes.length} times`)
  for (const { hold } of own)
    if (hold.lateOf !== undefined && evidence.faults.late !== "charge") wrong("charged late, against the host's policy")
  for (const { hold, at } of own) quoted(call, hold, at, plan, evidence.faults.skew, wrong)
  prompt(call, own, evidence, wrong)
  if (told === undefined) {
    // Its host died, or it hung up and nobody will ever know
    if (survived && !hungUp) wrong("has no answer")
    return
  }
  const { answer } = told
  if (Desk.actOf(intent.operation) !== undefined) judgeActs(call, evidence, ledgers, wrong)
  if (Exit.isSuccess(answer)) {
    if (answer.value.job !== undefined) return judgeAccepted(call, evidence, ledgers, wrong)
    if (Desk.actOf(intent.operation) !== undefined) return
    const reply = answer.value
    const original = reply.replayed ? ledgers.of(reply.requestId) : own
    const [charge] = original.filter(({ success }) => success !== undefined)
    if (reply.replayed && (net !== 0 || successes.length > 0)) wrong(`was told of ${reply.requestId}, and charged for itself`)
    const asked = evidence.calls.find((other) => other.requestId === reply.requestId)?.intent
    if (asked?.accountId !== intent.accountId || asked.request !== intent.request)
      wrong(`was told of ${reply.requestId}, which asked for something else`)
    if (!reply.replayed && reply.requestId !== requestId) wrong(`was told of ${reply.requestId} as if it were new`)
    const delivered = evidence.deliveries.filter((delivery) => delivery.requestId === reply.requestId && delivery.data === reply.data)
    if (delivered.length === 0) wrong("was told what no upstream delivered for it")
    if (isFree(reply, ledgers)) return
    if (reply.billed === undefined) return wrong("was told nothing of its cost")
    if (charge?.success === undefined) return wrong("was told a success that is not in the ledger")
    const { hold, success } = charge
    if ((charge.end?.place ?? 0) > told.ceiling) wrong("was told a success before it was written")
    if (success.charged !== reply.billed.charged) wrong(`was told ${reply.billed.charged}, and charged ${success.charged}`)
    if (charge.net !== success.charged) wrong(`was told a success, and refunded ${success.charged - charge.net}`)
    if (success.replyHash !== hash("sha256", reply.data, "base64url")) wrong("was told another reply than the one in the ledger")
    if (!delivered.some(({ quantity }) => success.quantity === (quantity ?? hold.quantity)))
      wrong(`charged for ${success.quantity} units that nobody delivered`)
    if (intent.maxCost !== undefined && !reply.replayed && hold.amount > intent.maxCost)
      wrong(`held ${hold.amount}, more than ${intent.maxCost}`)
    return
  }
  const tag = tagOf(answer)
  switch (tag) {
    case "Disconnected":
      return
    case "OutcomeUnknown":
      // Its host puts it right, or when that dies another does, if it could be written down
      if (intent.key === undefined && net !== 0 && (survived || own.some(({ hold }) => evidence.promised.has(hold.reservationId))))
        wrong(`does not know its outcome, and is charged ${net}`)
      return
    case undefined:
      if (Cause.hasInterruptsOnly(answer.cause)) return hungUp || !survived ? undefined : wrong("was interrupted by nobody")
      if (!isKnownBug(answer.cause)) wrong(`died: ${Cause.pretty(answer.cause)}`)
      break
    case "ReplyUnavailable":
      if (!isForgotten(call, evidence, ledgers)) wrong("is told that a reply is gone, which was kept")
      break
    case "KeyReused": {
      const other = evidence.calls.some(
        ({ intent: { accountId, key, request }, startedAt }) =>
          accountId === intent.accountId && key === intent.key && request !== intent.request && startedAt <= told.at
      )
      if (!other) wrong("is told that its key was used for another request")
      break
    }
    case "InFlight": {
      const error = Option.getOrUndefined(Exit.findErrorOption(answer))
      const hold = error?._tag === "InFlight" ? ledgers.byId.get(error.reservationId) : undefined
      if (hold === undefined || hold.place > told.ceiling || (hold.end !== undefined && hold.end.place <= call.floor))
        wrong("is told that another call runs under its key")
      break
    }
    case "InsufficientCredits":
      insufficient(call, evidence, wrong)
      break
  }
  if (net !== 0) wrong(`failed with ${tag ?? "a defect"}, and is charged ${net}`)
}

/** While the store serves, a call does not end before its hold has: nobody waits for an expiry to have his credits back. */
const prompt = ({ ended }: Call, own: ReadonlyArray<Reservation>, { faults, witness }: Evidence, wrong: Report): void => {
  if (ended === undefined || faults.events > 0 || faults.hosts > 0 || faults.appends !== undefined || faults.crash !== undefined) return
  const isFast = faults.delay <= 5 && faults.slow === 0
  for (const { hold, end } of own) {
    // A job goes on; one that was not accepted is given up, which may take as long as its host waits for that
    const isJob = hold.jobId !== undefined && (!isFast || witness.job(hold.jobId).arrivals[0]?.event._tag === "JobAccepted")
    const due = isJob ? 0 : (hold.expiresAt ?? hold.acceptBy ?? 0)
    if (ended.at + faults.skew < due && (end === undefined || end.place > ended.ceiling)) wrong(`leaves ${hold.reservationId} held`)
  }
}

/** A job under this key lasted so long that its reply is not kept any more, and has just been charged. */
const isForgotten = ({ intent: { accountId, key }, told }: Call, { calls, faults }: Evidence, ledgers: Ledgers): boolean =>
  calls.some(
    ({ intent, requestId }) =>
      intent.accountId === accountId &&
      intent.key === key &&
      ledgers
        .of(requestId)
        .some(
          ({ at, end, hold, success }) =>
            hold.jobId !== undefined &&
            success !== undefined &&
            (end?.at ?? 0) - at > REPLY_LIFETIME - faults.skew &&
            (end?.place ?? 0) <= (told?.ceiling ?? 0)
        )
  )

/** How long a reply can be replayed, milliseconds. */
const REPLY_LIFETIME = 24 * 3_600_000

/** Nothing is held for what costs nothing. */
const isFree = ({ billed, requestId }: Charge.Reply, ledgers: Ledgers): boolean =>
  (billed?.charged ?? 0) === 0 && ledgers.of(requestId).length === 0

const isKnownBug = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  return error instanceof Decisions.ChargeExceedsHold || (error instanceof Error && error.message === BUG)
}

/** A hold is for quantity times a price that was in force when it was made, as far as it had been published when the call began. */
const quoted = ({ startedAt, floor }: Call, hold: EventOf<"CreditReserved">, at: number, plan: Plan, skew: number, wrong: Report): void => {
  const list = plan[hold.priceVersion - 1]
  const price = list?.prices[hold.operation]
  if (list === undefined || price === undefined || price * hold.quantity !== hold.amount)
    return wrong(`holds ${hold.amount} for ${hold.quantity} at ${price}`)
  const isOver = plan.slice(hold.priceVersion).some(({ effectiveAt, place }) => place <= floor && effectiveAt < startedAt - skew)
  if (list.effectiveAt > at + skew || isOver) wrong(`holds at the prices of version ${hold.priceVersion}, which is not in force`)
}

/** A refusal rests on a state that was, at some instant between the question and the answer. */
const insufficient = ({ intent: { accountId }, told, startedAt, floor }: Call, { witness, faults }: Evidence, wrong: Report): void => {
  const error = told && Option.getOrUndefined(Exit.findErrorOption(told.answer))
  if (told === undefined || error?._tag !== "InsufficientCredits") return
  const places = witness.arrivals.filter(({ stream }) => StreamName.isStreamName(stream) && StreamName.id(stream) === accountId)
  const first = places.filter(({ place }) => place <= floor).length - 1
  const last = places.filter(({ place }) => place <= told.ceiling).length - 1
  const end = told.at + faults.skew
  for (let revision = first; revision <= last; revision++) {
    const state = witness.stateAt(accountId, revision)
    const due = [
      ...state.purse.lots.map(({ expiresAt }) => expiresAt),
      ...[...HashMap.values(state.purse.holds)].map(({ expiresAt }) => expiresAt)
    ]
    const instants = [startedAt, end, ...due.filter((at) => typeof at === "number" && at >= startedAt && at <= end)]
    // The ledger's clock never runs back behind its last event
    if (instants.some((at) => typeof at === "number" && availableAt(state, Math.max(at, places[revision]?.at ?? 0)) === error.available))
      return
  }
  wrong(`is told that there are ${error.available}, which there never were`)
}

const availableAt = (state: Account.Account, at: number): number => Lots.available(Decisions.asOf(state, at).purse.lots, at)

/** Under one key, what is answered within a day is one success, to the byte. */
const keys = (calls: ReadonlyArray<Call>, ledgers: Ledgers, report: Report): void => {
  const DAY = 24 * 3_600_000 - 60_000
  const replies = new Map<string, { readonly at: number; readonly data: string; readonly requestId: string }>()
  for (const { intent, told, requestId } of calls) {
    if (intent.key === undefined || told === undefined || Exit.isFailure(told.answer)) continue
    const name = `${intent.accountId} ${intent.key}`
    const { data, requestId: original } = told.answer.value
    if (isFree(told.answer.value, ledgers)) continue
    const before = replies.get(name)
    if (before !== undefined && Math.abs(told.at - before.at) < DAY && (before.data !== data || before.requestId !== original))
      report(`${requestId}: ${intent.key} succeeded again, as ${original} after ${before.requestId}`)
    if (before === undefined || before.requestId !== original) replies.set(name, { at: told.at, data, requestId: original })
  }
}

/** No credit that nobody granted, none granted that was refused, and all that was promised. */
const minted = (arrivals: ReadonlyArray<Arrival>, grants: ReadonlyArray<Grant>, report: Report): void => {
  const lots = new Map<string, number>()
  const promised = new Map(grants.map((grant) => [`${grant.accountId} ${grant.lotId}`, grant]))
  const adjusted = new Map<string, number>()
  for (const { event, stream } of arrivals) {
    if (event._tag === "LotExpired") adjusted.set(stream, event.amount)
    if (event._tag !== "CreditsGranted") continue
    const name = `${stream.slice("account-".length)} ${event.lotId}`
    lots.set(name, (lots.get(name) ?? 0) + 1)
    const grant = promised.get(name)
    if (event.source === "adjustment" ? adjusted.get(stream) !== event.amount : event.source !== "signup" && grant?.amount !== event.amount)
      report(`${stream}: ${event.amount} credits of ${event.lotId} come from nothing`)
    if (event.source === "adjustment") adjusted.delete(stream)
  }
  const asked = Map.groupBy(grants, (grant) => `${grant.accountId} ${grant.lotId}`)
  for (const [name, told] of asked) {
    const there = lots.get(name) ?? 0
    if (told.some((grant) => grant.told === "ok") && there === 0) report(`${name} was granted, and is not there`)
    if (there > 0 && told.every((grant) => REFUSED.has(grant.told))) report(`${name} was refused, and is there`)
  }
}

const REFUSED = new Set(["AccountNotFound", "AccountClosed", "StoreUnavailable", "Busy"])
