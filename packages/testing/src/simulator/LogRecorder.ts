/** Records every event as it reaches the store, with the states that follow from it. This is what happened, whatever hosts answer. */
import {
  Account,
  type AccountEvent,
  type Balance,
  balanceOf,
  type EventOf,
  Inbox,
  InboxAddress,
  Invoice,
  Job,
  Payment,
  ProxySession,
  Session,
  SignInLink,
  Sms,
  Subscription,
  Verification,
  Webhook
} from "@millrace/core"
import { type Decider, type EventCodec, EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import type { CheckedEvent } from "../Invariants.ts"
import { Histories, type Recorded } from "./Histories.ts"
import type { World } from "./World.ts"

type Events = EventStore.EventStore["Service"]

export type RecordedAccountEvent = Recorded<AccountEvent>
export type RecordedJobEvent = Recorded<Job.JobEvent>

/** An event of a webhook. `arrivedAt`: when it was in the log, milliseconds since 1970. */
export interface RecordedWebhookEvent extends Recorded<Webhook.WebhookEvent> {
  readonly arrivedAt: number
}

/** All events of one job, and its state after each of them. */
export interface JobHistory {
  readonly jobId: string
  readonly events: Array<RecordedJobEvent>
  readonly states: Array<Job.Job>
}

/** The job's newest state. */
export const stateOf = ({ states }: JobHistory): Job.Job => states.at(-1) ?? Job.Job.initial

/** Whether an event ends a hold, or a slot of a trial. */
const isEnd = (event: AccountEvent): event is EventOf<"OperationSucceeded" | "Refunded" | "TrialUsed" | "TrialReleased"> =>
  event._tag === "OperationSucceeded" ||
  (event._tag === "Refunded" && event.stage === "reserved") ||
  event._tag === "TrialUsed" ||
  event._tag === "TrialReleased"

export class LogRecorder {
  /** Events in the log. */
  length = 0
  readonly accountEvents: Array<RecordedAccountEvent> = []
  /** The events that have invariants, in the order of the log. */
  readonly all: Array<Recorded<CheckedEvent>> = []
  readonly jobs = new Map<string, JobHistory>()
  /** Events of each webhook by its id. */
  readonly webhooks = new Map<string, Array<RecordedWebhookEvent>>()
  readonly inboxes = new Histories(Inbox.Inbox)
  /** Text messages, and waits for verification codes. */
  readonly texts = new Histories(Sms.Sms)
  readonly waits = new Histories(Verification.Verification)
  readonly sessions = new Histories(ProxySession.ProxySession)
  /** Payments made here, and claims of others. */
  readonly payments: Histories<Payment.Payment, Payment.PaymentEvent> = new Histories(Payment.Payment)
  /** Invoices and credit notes, by their month. */
  readonly invoices: Histories<Invoice.Month, Invoice.InvoiceEvent> = new Histories(Invoice.Invoice)
  /** Subscriptions, by the account without its prefix. */
  readonly subscriptions: Histories<Subscription.Subscriptions, Subscription.SubscriptionEvent> = new Histories(Subscription.Subscription)
  /** Links that were mailed to people. */
  readonly links = new Histories(SignInLink.SignInLink)
  /** Reservations that have not ended. */
  readonly openHolds = new Set<string>()
  /** The store, with every append recorded. */
  readonly store: Events
  readonly #states = new Map<string, Array<Account.Account>>()
  /** Appends that are in the log after one that is not recorded yet, by the length of the log before them. */
  readonly #unrecorded = new Map<number, () => void>()

  constructor(world: World, store: Events) {
    this.store = {
      ...store,
      append: EventStore.wrapAppend(store.append, (stream, expected, events, conditions) =>
        Effect.tap(store.append(stream, expected, events, conditions), ({ position }) =>
          Effect.sync(() => this.#appended(world, stream, expected, events, Number(position)))
        )
      )
    }
  }

  /** The account's state after each of its events. */
  states(accountId: string): ReadonlyArray<Account.Account> {
    return this.#states.get(accountId) ?? []
  }

  /** The account's state after the event of this revision; the initial state before the first. */
  stateAt(accountId: string, revision: number): Account.Account {
    return this.states(accountId)[revision] ?? Account.initial
  }

  /** The balance that follows from the events decided up to `at`, milliseconds since 1970. */
  balanceAt(accountId: string, at: number): Balance {
    const before = this.accountEvents.filter((recorded) => recorded.stream.endsWith(`-${accountId}`) && recorded.at <= at)
    return balanceOf(accountId, this.stateAt(accountId, before.length - 1), at)
  }

  /** The job's history; an empty one if there is no such job. */
  job(jobId: string): JobHistory {
    return this.jobs.get(jobId) ?? { jobId, events: [], states: [] }
  }

  /** Jobs that were accepted and have not ended. */
  openJobs(): ReadonlyArray<JobHistory> {
    return [...this.jobs.values()].filter((job) => Job.isOpen(stateOf(job)))
  }

  #appended(
    world: World,
    stream: StreamName.StreamName,
    expected: EventStore.ExpectedRevision,
    events: ReadonlyArray<EventStore.EventData>,
    last: number
  ): void {
    // A repeated append is in the log already
    if (last <= this.length) return
    // Another append may have been recorded between this append and here
    this.#unrecorded.set(last - events.length, () => {
      const first = expected === "noStream" ? 0 : expected + 1
      world.note("log", `${stream} ${first}: ${events.map(({ type }) => type).join(", ")}`)
      events.forEach((event, i) => this.#record(world, stream, first + i, event))
    })
    for (let record = this.#unrecorded.get(this.length); record !== undefined; record = this.#unrecorded.get(this.length)) record()
  }

  #record(world: World, stream: StreamName.StreamName, revision: number, { type, data, metadata }: EventStore.EventData): void {
    const index = ++this.length
    const at = HashChain.timeOf({ type, data, metadata, id: "" })
    const common = { index, stream, revision, at, metadata: JSON.parse(metadata) }
    const of = <Event extends EventCodec.Tagged>({ codec }: Pick<Decider<unknown, Event>, "codec">): Recorded<Event> => ({
      ...common,
      event: codec.decode(type, data)
    })
    const id = StreamName.id(stream)
    switch (StreamName.category(stream)) {
      case Account.Account.category:
        return this.#recordAccount(of(Account.Account))
      case Job.Job.category:
        return this.#recordJob(of(Job.Job))
      case Webhook.Webhook.category:
        return this.#recordWebhook({ ...of(Webhook.Webhook), arrivedAt: world.now })
      case Inbox.Inbox.category:
        return this.inboxes.record(id, this.#checked(of(Inbox.Inbox)))
      case InboxAddress.AddressClaim.category:
        return void this.#checked(of(InboxAddress.AddressClaim))
      case Payment.Payment.category:
        return this.payments.record(id, this.#checked(of(Payment.Payment)))
      case Invoice.Invoice.category:
        return this.invoices.record(id, this.#checked(of(Invoice.Invoice)))
      case Subscription.Subscription.category:
        return this.subscriptions.record(id, this.#checked(of(Subscription.Subscription)))
      case SignInLink.SignInLink.category:
        return this.links.record(id, this.#checked(of(SignInLink.SignInLink)))
      case Session.Session.category:
        return void this.#checked(of(Session.Session))
      case Sms.Sms.category:
        return this.texts.record(id, this.#checked(of(Sms.Sms)))
      case Verification.Verification.category:
        return this.waits.record(id, this.#checked(of(Verification.Verification)))
      case ProxySession.ProxySession.category:
        return this.sessions.record(id, this.#checked(of(ProxySession.ProxySession)))
    }
  }

  #checked<Event extends CheckedEvent>(recorded: Recorded<Event>): Recorded<Event> {
    this.all.push(recorded)
    return recorded
  }

  #recordWebhook(recorded: RecordedWebhookEvent): void {
    const id = recorded.stream.slice("webhook-".length)
    this.webhooks.set(id, [...(this.webhooks.get(id) ?? []), recorded])
  }

  #recordJob(recorded: RecordedJobEvent): void {
    const job = this.job(recorded.stream.slice("job-".length))
    const before = stateOf(job)
    this.jobs.set(job.jobId, job)
    job.events.push(recorded)
    this.all.push(recorded)
    try {
      job.states.push(Job.Job.evolve(before, recorded.event, recorded.at))
    } catch {
      // The invariants report an event that does not fold
      job.states.push(before)
    }
  }

  #recordAccount(recorded: RecordedAccountEvent): void {
    const { at, event, stream } = recorded
    const accountId = stream.slice("account-".length)
    const states = this.#states.get(accountId) ?? []
    this.#states.set(accountId, states)
    states.push(Account.Account.evolve(states.at(-1) ?? Account.initial, event, at))
    this.accountEvents.push(recorded)
    this.all.push(recorded)
    if (event._tag === "CreditReserved" || event._tag === "TrialReserved") this.openHolds.add(event.reservationId)
    if (isEnd(event)) this.openHolds.delete(event.reservationId)
  }
}
