/** Single calls: the hold of a request, its price, its lots and its end, each with its event. Amounts in credits. */
import { Account, Credits, type EventOf, History, Job, PricePlan, toIso } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Option, Schema, Stream } from "effect"
import { type Failure, fail } from "../Failure.ts"
import { dateOf } from "./Act.ts"

/** An event's id and place in the log. */
export interface Place {
  readonly event: string
  readonly type: string
  readonly stream: string
  readonly revision: number
  readonly position: string
}

type Part = { readonly lot: string; readonly amount: number }

/** What one attempt of a call held, and how it ended. */
export interface ShownCharge {
  readonly request: string
  readonly account: string
  readonly reservation: string
  readonly operation: string
  readonly outcome: "open" | "charged" | "refunded"
  readonly hold: Partial<Place> & {
    readonly amount: number
    readonly quantity: number
    readonly at: string | null
    readonly expiresAt: Date | null
    /** The reservation that ended before this late call could be charged. */
    readonly lateOf?: string
  }
  readonly price: { readonly version: number; readonly unitPrice?: number; readonly effectiveAt?: string } & Partial<Place>
  readonly lots: ReadonlyArray<Part & { readonly source?: string; readonly granted?: number } & Partial<Place>>
  readonly ends: ReadonlyArray<
    Place & {
      readonly end: "charged" | "refunded"
      readonly amount: number
      /** Why it was refunded. */
      readonly reason: string | null
      readonly at: string
      readonly lots: ReadonlyArray<Part>
      /** Why an upstream failed; `erased` or `unreadable` where that cannot be opened. */
      readonly failure?: string
    }
  >
  /** The job that it pays for, and why attempts at it failed. */
  readonly job?: string
  readonly failedAttempts?: ReadonlyArray<Place & { readonly attempt: number; readonly error: string; readonly failure?: string }>
}

/** Every attempt of a request. Reads the whole log. */
export const show = (requestId: string, reveal: Reveal): Effect.Effect<ReadonlyArray<ShownCharge>, Failure, EventStore.EventStore> =>
  Effect.gen(function* () {
    const found = yield* History.reservations({ requestId })
    if (found.length === 0) return yield* fail(`no call of request ${requestId} held any credits`)
    return yield* Effect.forEach(found, (reservation) => describe(reveal, reservation))
  })

type LotParts = EventOf<"CreditReserved">["lots"]

const placeOf = ({ position, stream, revision, id, type }: EventStore.RecordedEvent): Place => ({
  event: id,
  type,
  stream,
  revision,
  position
})

const partsOf = (parts: LotParts) => parts.map(({ lotId, amount }) => ({ lot: lotId, amount: Credits.toDecimal(amount) }))

/** The first result of `tell` for the events of a stream. */
const first = <A>(stream: StreamName.StreamName, tell: (event: EventStore.RecordedEvent) => A | undefined) =>
  Effect.gen(function* () {
    const store = yield* EventStore.EventStore
    const told = Stream.filter(Stream.map(store.readStream(stream), tell), (answer) => answer !== undefined)
    return Option.getOrUndefined(yield* Stream.runHead(told))
  })

const accounts = Account.Account.codec
const pricePlans = PricePlan.PricePlan.codec
const PRICES = StreamName.make(PricePlan.PricePlan.category, "standard")

/** The price version of a hold, as it was published. */
const priceOf = ({ operation, priceVersion }: EventOf<"CreditReserved">) =>
  first(PRICES, (recorded) => {
    const { version, effectiveAt, prices } = pricePlans.decode(recorded.type, recorded.data)
    const unitPrice = prices[operation]
    return version === priceVersion && unitPrice !== undefined
      ? { version, unitPrice: Credits.toDecimal(unitPrice), effectiveAt: toIso(effectiveAt), ...placeOf(recorded) }
      : undefined
  })

const GRANTS = accounts.typesOf(["CreditsGranted"])

/** The grant that made a lot. */
const grantOf = (account: string, lotId: string) =>
  first(StreamName.make(Account.Account.category, account), (recorded) => {
    if (!GRANTS.has(recorded.type)) return undefined
    const event = accounts.decode(recorded.type, recorded.data)
    return event._tag === "CreditsGranted" && event.lotId === lotId
      ? { source: event.source, granted: Credits.toDecimal(event.amount), ...placeOf(recorded) }
      : undefined
  })

type Happened = History.ReservationHistory["events"][number]

/** The events that ended a hold, or gave credits back later. */
const endOf = ({ recorded, event }: Happened): ShownCharge["ends"] => {
  if (event._tag !== "OperationSucceeded" && event._tag !== "Refunded") return []
  const [end, amount, reason] =
    event._tag === "Refunded" ? (["refunded", event.amount, event.reason] as const) : (["charged", event.charged, null] as const)
  const shown = { end, amount: Credits.toDecimal(amount), reason, at: HashChain.atOf(recorded) }
  return [{ ...shown, lots: partsOf(event.lots), ...placeOf(recorded) }]
}

const Sealed = Schema.fromJsonString(Schema.Struct({ failure: Schema.optionalKey(Schema.String) }))

/** Opens the reason of a failure that is sealed for an account. */
export type Reveal = (accountId: string, sealed: string) => Effect.Effect<string, Failure>

/** Why an upstream failed, from the event that ended a hold: its reason, or `erased` or `unreadable`. */
const failureOf = (reveal: Reveal, accountId: string, { metadata }: EventStore.RecordedEvent) => {
  const failure = Option.getOrUndefined(Schema.decodeOption(Sealed)(metadata))?.failure
  if (failure === undefined) return Effect.succeed({})
  return reveal(accountId, failure).pipe(
    // Unreadable also without the key or the state, which nothing else needs
    Effect.catch(({ _tag }) => Effect.succeed(_tag === "SubjectDestroyed" ? "erased" : "unreadable")),
    Effect.map((failure) => ({ failure }))
  )
}

/** Why attempts at the job of a hold failed, in order. */
const attemptsOf = (reveal: Reveal, accountId: string, jobId: string | undefined) =>
  Effect.gen(function* () {
    if (jobId === undefined) return {}
    const events = yield* EventStore.EventStore
    const recorded = yield* Stream.runCollect(events.readStream(StreamName.make(Job.Job.category, jobId)))
    const attempts = yield* Effect.forEach(recorded, (happened) => {
      const event = Job.Job.codec.decode(happened.type, happened.data)
      if ((event._tag !== "JobReleased" && event._tag !== "JobFailed") || event.failure === undefined) return Effect.succeed([])
      const { attempt, failure: error } = event
      return Effect.map(failureOf(reveal, accountId, happened), (failure) => [{ attempt, error, ...failure, ...placeOf(happened) }])
    })
    return { job: jobId, failedAttempts: attempts.flat() }
  })

const describe = (reveal: Reveal, { accountId, hold, events }: History.ReservationHistory) =>
  Effect.gen(function* () {
    const reserved = events.find(({ event }) => event._tag === "CreditReserved")?.recorded
    const ends = yield* Effect.forEach(events, (happened) =>
      Effect.forEach(endOf(happened), (end) =>
        Effect.map(failureOf(reveal, accountId, happened.recorded), (failure) => ({ ...end, ...failure }))
      )
    ).pipe(Effect.map((ends) => ends.flat()))
    const lots = yield* Effect.forEach(hold.lots, ({ lotId, amount }) =>
      Effect.map(grantOf(accountId, lotId), (grant) => ({ lot: lotId, amount: Credits.toDecimal(amount), ...grant }))
    )
    return {
      request: hold.requestId,
      account: accountId,
      reservation: hold.reservationId,
      operation: hold.operation,
      outcome: ends[0]?.end ?? ("open" as const),
      hold: {
        amount: Credits.toDecimal(hold.amount),
        quantity: hold.quantity,
        at: reserved === undefined ? null : HashChain.atOf(reserved),
        expiresAt: dateOf(hold.expiresAt ?? hold.acceptBy),
        ...(hold.lateOf === undefined ? {} : { lateOf: hold.lateOf }),
        ...(reserved === undefined ? {} : placeOf(reserved))
      },
      price: (yield* priceOf(hold)) ?? { version: hold.priceVersion },
      lots,
      ends,
      ...(yield* attemptsOf(reveal, accountId, hold.jobId))
    }
  })
