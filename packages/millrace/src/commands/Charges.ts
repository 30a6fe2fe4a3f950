/** `charges`: the hold of a request, its price, its lots and its end, each with its event. */
import { Account, Credits, type EventOf, History, Job, PricePlan, toIso, Vault } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Layer, Option, Schema, Stream } from "effect"
import { Command } from "effect/cli"
import * as Administration from "../Administration.ts"
import { fail } from "../Failure.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"

type LotParts = EventOf<"CreditReserved">["lots"]

/** An event's id and place in the log. */
const placeOf = ({ position, stream, revision, id, type }: EventStore.RecordedEvent) => ({ event: id, type, stream, revision, position })

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
const endOf = ({ recorded, event }: Happened) => {
  if (event._tag !== "OperationSucceeded" && event._tag !== "Refunded") return []
  const [end, amount, reason] =
    event._tag === "Refunded" ? (["refunded", event.amount, event.reason] as const) : (["charged", event.charged, null] as const)
  return [{ end, amount: Credits.toDecimal(amount), reason, at: HashChain.atOf(recorded), lots: partsOf(event.lots), ...placeOf(recorded) }]
}

const Sealed = Schema.fromJsonString(Schema.Struct({ failure: Schema.optionalKey(Schema.String) }))

/** Why an upstream failed, from the event that ended a hold: its reason, or `erased` or `unreadable`. */
const failureOf = (store: string, accountId: string, { metadata }: EventStore.RecordedEvent) => {
  const failure = Option.getOrUndefined(Schema.decodeOption(Sealed)(metadata))?.failure
  if (failure === undefined) return Effect.succeed({})
  return Vault.Vault.use((vault) => vault.open(Vault.ofAccount(accountId), "failure", failure)).pipe(
    Effect.provide(Layer.provide(Vault.Vault.layer, StoreUrl.secretsLayer(store))),
    Effect.catchTag("SubjectDestroyed", () => Effect.succeed("erased")),
    // Also without the key or the state, which nothing else needs
    Effect.orElseSucceed(() => "unreadable"),
    Effect.map((failure) => ({ failure }))
  )
}

/** Why attempts at the job of a hold failed, in order. */
const attemptsOf = (store: string, accountId: string, jobId: string | undefined) =>
  Effect.gen(function* () {
    if (jobId === undefined) return {}
    const events = yield* EventStore.EventStore
    const recorded = yield* Stream.runCollect(events.readStream(StreamName.make(Job.Job.category, jobId)))
    const attempts = yield* Effect.forEach(recorded, (happened) => {
      const event = Job.Job.codec.decode(happened.type, happened.data)
      if ((event._tag !== "JobReleased" && event._tag !== "JobFailed") || event.failure === undefined) return Effect.succeed([])
      const { attempt, failure: error } = event
      return Effect.map(failureOf(store, accountId, happened), (failure) => [{ attempt, error, ...failure, ...placeOf(happened) }])
    })
    return { job: jobId, failedAttempts: attempts.flat() }
  })

const describe = (store: string, { accountId, hold, events }: History.ReservationHistory) =>
  Effect.gen(function* () {
    const reserved = events.find(({ event }) => event._tag === "CreditReserved")?.recorded
    const ends = yield* Effect.forEach(events, (happened) =>
      Effect.forEach(endOf(happened), (end) =>
        Effect.map(failureOf(store, accountId, happened.recorded), (failure) => ({ ...end, ...failure }))
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
      outcome: ends[0]?.end ?? "open",
      hold: {
        amount: Credits.toDecimal(hold.amount),
        quantity: hold.quantity,
        at: reserved === undefined ? null : HashChain.atOf(reserved),
        expiresAt: Administration.isoOrNull(hold.expiresAt ?? hold.acceptBy),
        ...(hold.lateOf === undefined ? {} : { lateOf: hold.lateOf }),
        ...(reserved === undefined ? {} : placeOf(reserved))
      },
      price: (yield* priceOf(hold)) ?? { version: hold.priceVersion },
      lots,
      ends,
      ...(yield* attemptsOf(store, accountId, hold.jobId))
    }
  })

const show = Command.make(
  "show",
  {
    store: Administration.store,
    request: Administration.id("request", "Id of the request: X-Request-Id of its reply"),
    json: Output.json
  },
  ({ request, store, json }) =>
    Effect.gen(function* () {
      const found = yield* History.reservations({ requestId: request })
      if (found.length === 0) return yield* fail(`no call of request ${request} held any credits`)
      for (const reservation of found) yield* Output.print(json, yield* describe(store, reservation))
    }).pipe(Effect.provide(StoreUrl.logLayer(store)))
).pipe(
  Command.withDescription("Show what a request held, at which price, from which lots, and how it ended, each with its event"),
  Administration.withExamples({
    "millrace charges show --request 5f0c7c4e-7c39-4d2f-9b57-0d1f3a3f7a11": "Find a call by the request id of its reply"
  })
)

export const charges = Administration.group("charges", "Look at single charges", [show])
