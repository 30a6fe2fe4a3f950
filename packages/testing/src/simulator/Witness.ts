/** Stands at the store itself and sees each event arrive: what truly was, whatever anybody is told. */
import { Account, type AccountEvent, type Balance, balanceOf, Job } from "@millrace/core"
import { type EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import type { World } from "./World.ts"

type Events = EventStore.EventStore["Service"]

/** An event as it arrived. */
interface Arrived<Event> {
  /** Place in the log, from 1. */
  readonly place: number
  readonly stream: string
  readonly revision: number
  readonly event: Event
  /** When it was decided. */
  readonly at: number
  readonly metadata: Readonly<Record<string, unknown>>
}

export type Arrival = Arrived<AccountEvent>
export type JobArrival = Arrived<Job.JobEvent>

/** A job with all its events, and what it was after each. */
export interface SeenJob {
  readonly jobId: string
  readonly arrivals: Array<JobArrival>
  readonly states: Array<Job.Job>
}

const { codec } = Account.Account
const jobCodec = Job.Job.codec

export class Witness {
  /** Events in the log. */
  length = 0
  readonly arrivals: Array<Arrival> = []
  /** Of accounts and jobs, in the order of the log. */
  readonly all: Array<Arrival | JobArrival> = []
  readonly jobs = new Map<string, SeenJob>()
  /** Reservations without an end. */
  readonly openHolds = new Set<string>()
  readonly store: Events
  readonly #states = new Map<string, Array<Account.Account>>()
  /** What stands in the log, but after something that was not seen yet, by the place before it. */
  readonly #unseen = new Map<number, () => void>()

  constructor(world: World, store: Events) {
    this.store = {
      ...store,
      append: (stream, expected, events) =>
        Effect.tap(store.append(stream, expected, events), ({ position }) =>
          Effect.sync(() => {
            const last = Number(position)
            // Sent again, it was there already
            if (last <= this.length) return
            // Its own fiber may be overtaken between the append and this
            this.#unseen.set(last - events.length, () => {
              const first = expected === "noStream" ? 0 : expected + 1
              world.say("log", `${stream} ${first}: ${events.map(({ type }) => type).join(", ")}`)
              events.forEach((event, i) => this.#see(stream, first + i, event))
            })
            for (let see = this.#unseen.get(this.length); see !== undefined; see = this.#unseen.get(this.length)) {
              this.#unseen.delete(this.length)
              see()
            }
          })
        )
    }
  }

  /** The account after each of its events; before the first, that which is not there. */
  states(accountId: string): ReadonlyArray<Account.Account> {
    return this.#states.get(accountId) ?? []
  }

  stateAt(accountId: string, revision: number): Account.Account {
    return this.states(accountId)[revision] ?? Account.initial
  }

  /** By the events that had been decided by then. */
  balanceAt(accountId: string, at: number): Balance {
    const before = this.arrivals.filter((arrival) => arrival.stream.endsWith(`-${accountId}`) && arrival.at <= at)
    return balanceOf(accountId, this.stateAt(accountId, before.length - 1), at)
  }

  /** Without any event where there is none. */
  job(jobId: string): SeenJob {
    return this.jobs.get(jobId) ?? { jobId, arrivals: [], states: [] }
  }

  /** Jobs that were accepted and have not ended. */
  openJobs(): ReadonlyArray<SeenJob> {
    return [...this.jobs.values()].filter(({ states }) => Job.isOpen(states.at(-1) ?? Job.Job.initial))
  }

  #see(stream: StreamName.StreamName, revision: number, { type, data, metadata }: EventStore.EventData): void {
    const place = ++this.length
    const at = () => Date.parse(HashChain.atOf({ type, data, metadata, id: "" }))
    if (StreamName.category(stream) === Account.Account.category)
      this.#seeAccount({ place, stream, revision, event: codec.decode(type, data), at: at(), metadata: JSON.parse(metadata) })
    if (StreamName.category(stream) === Job.Job.category)
      this.#seeJob({ place, stream, revision, event: jobCodec.decode(type, data), at: at(), metadata: JSON.parse(metadata) })
  }

  #seeJob(arrival: JobArrival): void {
    const job = this.job(arrival.stream.slice("job-".length))
    const before = job.states.at(-1) ?? Job.Job.initial
    this.jobs.set(job.jobId, job)
    job.arrivals.push(arrival)
    this.all.push(arrival)
    try {
      job.states.push(Job.Job.evolve(before, arrival.event, arrival.at))
    } catch {
      // It cannot be: the invariants say so
      job.states.push(before)
    }
  }

  #seeAccount(arrival: Arrival): void {
    const { at, event, stream } = arrival
    const accountId = stream.slice("account-".length)
    const states = this.#states.get(accountId) ?? []
    this.#states.set(accountId, states)
    states.push(Account.Account.evolve(states.at(-1) ?? Account.initial, event, at))
    this.arrivals.push(arrival)
    this.all.push(arrival)
    if (event._tag === "CreditReserved") this.openHolds.add(event.reservationId)
    if (event._tag === "OperationSucceeded" || (event._tag === "Refunded" && event.stage === "reserved"))
      this.openHolds.delete(event.reservationId)
  }
}
