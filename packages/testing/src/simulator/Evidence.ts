/**
 * The evidence of one simulation, which every checker reads: the answers to callers, the log, and the work of upstreams. Also indexes
 * of it: the reservations, the published prices, and the calls and attempts of each job.
 */
import { type EventOf, Job, PricePlan } from "@millrace/core"
import { type EventStore, StreamName } from "@millrace/event-sourcing"
import { areHostsUndisturbed, type Faults } from "./Faults.ts"
import { lastAt } from "./Histories.ts"
import * as JobEndpoints from "./JobEndpoints.ts"
import type { JobHistory, LogRecorder, RecordedAccountEvent, RecordedJobEvent } from "./LogRecorder.ts"
import type { Held } from "./payments/Gateway.ts"
import type { People } from "./people/People.ts"
import type { Terms } from "./proxies/Endpoints.ts"
import type {
  Admission,
  AnnouncedNode,
  AttemptRecord,
  Call,
  Carried,
  Counting,
  Delivered,
  Delivery,
  Grant,
  JobObservation,
  Mailing,
  Opening,
  Post,
  RecurringGrant,
  TextMessage
} from "./Records.ts"
import type { Process } from "./World.ts"

/** The secrets of webhooks. */
export interface Secrets {
  /** As administrators were told them, by the reason that they gave for the act. */
  readonly told: Map<string, string>
  /** As a host opened them once faults had ended, by their sealed text. */
  readonly opened: Map<string, string>
}

/** What is recorded while the simulation runs. */
export interface Records {
  readonly recorder: LogRecorder
  readonly calls: Array<Call>
  readonly grants: Array<Grant>
  readonly recurring: Array<RecurringGrant>
  readonly openings: Array<Opening>
  readonly deliveries: Array<Delivery>
  /** In the order in which they began. */
  readonly attempts: Array<AttemptRecord>
  readonly observations: Array<JobObservation>
  /** Webhooks in the order in which they were sent. */
  readonly posts: Array<Post>
  readonly secrets: Secrets
  readonly mailings: Array<Mailing>
  /** The HMACs of addresses of inboxes, as the log has them, once faults have ended. */
  readonly addressHashes: Map<string, string>
  readonly textings: Array<Delivered<TextMessage>>
  /** The payments at the gateway, with all that happened to them. */
  readonly paid: ReadonlyMap<string, Held>
  /** The streams of text messages by the ids of their providers, once faults have ended. */
  readonly textIds: Map<string, string>
  /** Proxy nodes by the host that clients connect to. */
  readonly nodes: Map<string, AnnouncedNode>
  readonly admissions: Array<Admission>
  /** What each node carried for each session, oldest first, by the session and the node. */
  readonly carried: Map<string, ReadonlyArray<Carried>>
  readonly countings: Array<Counting>
  /** What people did with links, sessions and keys. */
  readonly people: People
  /** Reservations of calls without a key whose outcome is unknown, and which the host has recorded to make free. */
  readonly promised: Set<string>
  /** The requests of calls whose upstream ignored interruption. */
  readonly ignoring: Set<string>
}

/** When faults ended: milliseconds since 1970, and the number of events in the log. */
export interface FaultsEnded {
  readonly at: number
  readonly length: number
}

/** What is known once the simulation has ended. */
export interface Final {
  readonly faults: Faults
  readonly faultsEnded: FaultsEnded
  readonly sessionTerms: Terms
  /** Whether one host led each account. */
  readonly leading: boolean
  /** The longest timeout of an operation that callers call: milliseconds. */
  readonly longestTimeout: number
  /** When the hosts stopped: milliseconds since 1970. */
  readonly end: number
  readonly log: ReadonlyArray<EventStore.RecordedEvent>
  /** Hosts that were up when the simulation ended. */
  readonly survivors: ReadonlySet<Process>
  /** The keys that the vault still holds. */
  readonly vaultKeys: ReadonlySet<string>
}

/** Gets a description of each violation. */
export type Report = (violation: string) => void

/** A hold, its end, and its charge. */
export interface Reservation {
  readonly stream: string
  readonly hold: EventOf<"CreditReserved">
  /** Its place in the log, and when it was decided. */
  readonly index: number
  readonly at: number
  end?: RecordedAccountEvent
  success?: EventOf<"OperationSucceeded">
  /** What was charged and not refunded; goodwill is not deducted. */
  net: number
}

export class Reservations {
  readonly byId = new Map<string, Reservation>()
  readonly #byRequest = new Map<string, Array<Reservation>>()

  constructor(events: ReadonlyArray<RecordedAccountEvent>) {
    for (const recorded of events) {
      const { event, at, index, stream } = recorded
      if (event._tag === "CreditReserved") {
        const reservation: Reservation = { stream, hold: event, index, at, net: 0 }
        this.byId.set(event.reservationId, reservation)
        this.#byRequest.set(event.requestId, [...this.of(event.requestId), reservation])
      }
      const known = "reservationId" in event ? this.byId.get(event.reservationId) : undefined
      if (known === undefined) continue
      if (event._tag === "OperationSucceeded") Object.assign(known, { end: recorded, success: event, net: event.charged })
      if (event._tag === "Refunded" && event.stage === "reserved") known.end = recorded
      if (event._tag === "Refunded" && event.stage === "settled" && event.reason !== "goodwill") known.net -= event.amount
    }
  }

  of(requestId: string): ReadonlyArray<Reservation> {
    return this.#byRequest.get(requestId) ?? []
  }
}

/** Slots of trials, by the request of the call that took them. */
const slotsIn = (events: ReadonlyArray<RecordedAccountEvent>): ReadonlyMap<string, ReadonlyArray<EventOf<"TrialReserved">>> =>
  Map.groupBy(
    events.flatMap(({ event }) => (event._tag === "TrialReserved" ? [event] : [])),
    ({ requestId }) => requestId
  )

/** Every version of the prices, oldest first, with its place in the log. */
export type Prices = ReadonlyArray<PricePlan.PricePlanEvent & { readonly index: number }>

const pricesIn = (log: ReadonlyArray<EventStore.RecordedEvent>): Prices =>
  log.flatMap(({ stream, type, data }, i) =>
    StreamName.category(stream) === PricePlan.PricePlan.category ? [{ ...PricePlan.PricePlan.codec.decode(type, data), index: i + 1 }] : []
  )

/** A call that reads, cancels or downloads a job. */
export interface JobActionCall {
  readonly action: JobEndpoints.JobAction
  readonly call: Call
}

/** The job that a call of a job endpoint is about. */
export const jobIdOf = ({ intent: { input } }: Call): string => String("job" in input ? input["job"] : "")

const actionsIn = (calls: ReadonlyArray<Call>): ReadonlyMap<string, ReadonlyArray<JobActionCall>> =>
  Map.groupBy(
    calls.flatMap((call) => {
      const action = JobEndpoints.actionOf(call.intent.operation)
      return action === undefined ? [] : [{ action, call }]
    }),
    ({ call }) => jobIdOf(call)
  )

/** Time after which a fault has no effects: a paused host has resumed, and an attempt that hung is over. Milliseconds. */
export const AFTERMATH = 5 * 60_000

export type Evidence = ReturnType<typeof indexEvidence>

/** Indexes the records for the checkers. */
export const indexEvidence = (records: Records, final: Final) => {
  const calls = new Map(records.calls.map((call) => [call.requestId, call]))
  const actions = actionsIn(records.calls)
  const attempts = Map.groupBy(records.attempts, ({ jobId }) => jobId)
  const reservations = new Reservations(records.recorder.accountEvents)
  const slots = slotsIn(records.recorder.accountEvents)
  return {
    ...final,
    ...{ records, recorder: records.recorder, calls: records.calls },
    reservations,
    /** What a call took from its account: holds of credits, or a slot of its trial. */
    takenBy: (requestId: string): ReadonlyArray<EventOf<"CreditReserved" | "TrialReserved">> => [
      ...reservations.of(requestId).map(({ hold }) => hold),
      ...(slots.get(requestId) ?? [])
    ],
    prices: pricesIn(final.log),
    call: (requestId: string): Call | undefined => calls.get(requestId),
    /** Calls that read, cancelled or downloaded this job, in the order in which they began. */
    actionsOn: (jobId: string): ReadonlyArray<JobActionCall> => actions.get(jobId) ?? [],
    attemptsAt: (jobId: string): ReadonlyArray<AttemptRecord> => attempts.get(jobId) ?? [],
    /** From then on nothing kept a host from doing its work: milliseconds since 1970. */
    undisturbedSince: areHostsUndisturbed(final.faults) ? 0 : final.faultsEnded.at + AFTERMATH
  }
}

/** Whether it releases a hold whose call never ended it. */
export const isAbandoned = ({ event }: RecordedAccountEvent): boolean =>
  event._tag === "Refunded" && event.stage === "reserved" && event.reason === "abandoned"

/** Whether it ends a job that was accepted. */
export const isEnd = ({ event: { _tag } }: RecordedJobEvent): boolean =>
  _tag === "JobSucceeded" || _tag === "JobFailed" || _tag === "JobCancelled"

/** The states of a job that a reader may have been shown: those from the first to the last of these lengths of the log. */
export const statesBetween = ({ events, states }: JobHistory, lengthBefore: number, lengthAfter: number): ReadonlyArray<Job.Job> => {
  const first = lastAt(events, lengthBefore)
  const last = lastAt(events, lengthAfter)
  return [...(first < 0 ? [Job.Job.initial] : []), ...states.slice(Math.max(0, first), last + 1)]
}
