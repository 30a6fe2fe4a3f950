/**
 * The journal: one transaction in double entry for every event that moves credits or money, for the tools of accountants. Postings come from
 * the events and asserted balances from the fold, so a tool that checks the journal compares the two after every event.
 */
import { Account, type AccountEvent, type Lots, Money, Postings } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Array, Effect, Schema, Stream } from "effect"
import { balancesOf } from "./AccountReplay.ts"
import { Chain } from "./Chain.ts"
import type { Export } from "./Export.ts"
import { beancount } from "./journal/Beancount.ts"
import { csv } from "./journal/Csv.ts"
import type { Balance, Format, Line, Tags, Transaction, Writing } from "./journal/Format.ts"
import { jsonl } from "./journal/Jsonl.ts"
import { hledger, ledger } from "./journal/Ledger.ts"
import { MoneyBook } from "./journal/MoneyBook.ts"
import { Totals } from "./journal/Totals.ts"
import { WHOLE_LOG } from "./Report.ts"

export const formats: Readonly<Record<FormatName, (writing: Writing) => Format>> = { hledger, ledger, beancount, csv, jsonl }
export type FormatName = "hledger" | "ledger" | "beancount" | "csv" | "jsonl"

/** An event that cannot be read. The audit reports what is wrong with it. */
export class UnreadableLog extends Schema.TaggedError<UnreadableLog>()("UnreadableLog", {
  position: Schema.String,
  stream: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `The event at ${this.position} in ${this.stream} cannot be read: ${this.reason}`
  }
}

/** An event that is not in its place, or does not match its hash: what follows is not proven. The audit reports all that is wrong. */
export class UnverifiedLog extends Schema.TaggedError<UnverifiedLog>()("UnverifiedLog", {
  position: Schema.String,
  stream: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    const where = this.stream === WHOLE_LOG ? "" : ` in ${this.stream}`
    return `The event at ${this.position}${where} does not verify: ${this.reason}`
  }
}

export interface Options {
  /** Writes the journal of a log whose places and hashes are not checked. */
  readonly unverified?: boolean
}

/**
 * The whole log as a journal, in pieces of text. The places and hashes of all events are verified as they are read: the stream fails at the
 * first that is wrong. Credits are called and worth what `Money.Current` says.
 */
export const journal = (
  name: FormatName,
  options: Options = {}
): Stream.Stream<string, EventStore.StoreUnavailable | UnreadableLog | UnverifiedLog, EventStore.EventStore> =>
  Stream.unwrap(Effect.map(EventStore.EventStore, (store) => written(name, options, store.readAll(EventStore.start), false)))

/** The journal of an export, without its store. It also fails at a line that is no event, and where events are missing. */
export const journalOfExport = (
  name: FormatName,
  file: Export,
  options: Options = {}
): Stream.Stream<string, EventStore.StoreUnavailable | UnreadableLog | UnverifiedLog> =>
  Stream.suspend(() => {
    let wrong: UnverifiedLog | undefined
    if (options.unverified !== true)
      file.onProblem = ({ detail, line, stream }) => {
        wrong ??= new UnverifiedLog({ position: `line ${line}`, stream, reason: detail })
      }
    const stop = () => (wrong === undefined ? Stream.empty : Stream.fail(wrong))
    const events = Stream.mapArrayEffect(file.store.readAll(EventStore.start), (events) =>
      wrong === undefined ? Effect.succeed(events) : Effect.fail(wrong)
    )
    return written(name, options, Stream.concat(events, Stream.suspend(stop)), true)
  })

type Events<E> = Stream.Stream<EventStore.RecordedEvent, E>

const written = <E>(
  name: FormatName,
  { unverified = false }: Options,
  log: Events<E>,
  isExport: boolean
): Stream.Stream<string, E | UnreadableLog | UnverifiedLog> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const format = formats[name]({ money: yield* Money.Current, unverified })
      const writer = new Writer(format, unverified ? undefined : new Chain(isExport))
      const body = Stream.mapArrayEffect(log, (events) =>
        Effect.try({
          try: () => Array.of(events.map((event) => writer.next(event)).join("")),
          catch: (error) => (error instanceof UnreadableLog || error instanceof UnverifiedLog ? error : unreadable(events[0], error))
        })
      )
      const end = Stream.suspend(() => Stream.make(writer.end()))
      return Stream.make(format.opening).pipe(Stream.concat(body), Stream.concat(end))
    })
  )

const unreadable = ({ position, stream }: EventStore.RecordedEvent, error: unknown) =>
  new UnreadableLog({ position, stream, reason: error instanceof Error ? error.message : String(error) })

/** An account, as far as the journal was written. */
interface Own {
  readonly state: Account.Account
  readonly date: string
}

class Writer {
  readonly #format: Format
  readonly #chain: Chain | undefined
  readonly #accounts = new Map<StreamName.StreamName, Own>()
  readonly #money = new MoneyBook()
  readonly #totals = new Totals()
  #lastDate = ""

  constructor(format: Format, chain: Chain | undefined) {
    this.#format = format
    this.#chain = chain
  }

  /** The text that an event adds: empty if it moves neither credits nor money. */
  next(event: EventStore.RecordedEvent): string {
    const reason = this.#chain?.wrongWith(event)
    if (reason !== undefined) throw new UnverifiedLog({ position: event.position, stream: event.stream, reason })
    try {
      return StreamName.category(event.stream) === Account.Account.category ? this.#post(event) : this.#postMoney(event)
    } catch (error) {
      throw unreadable(event, error)
    }
  }

  #post(recorded: EventStore.RecordedEvent): string {
    const accountId = StreamName.id(recorded.stream)
    const own = this.#accounts.get(recorded.stream)
    const before = own?.state ?? Account.initial
    const at = HashChain.atOf(recorded)
    const event = Account.Account.codec.decode(recorded.type, recorded.data)
    const postings = Postings.postings(accountId, before, event)
    const state = Account.Account.evolve(before, event, Date.parse(at))
    const date = postings.length === 0 ? (own?.date ?? "") : at.slice(0, 10)
    this.#accounts.set(recorded.stream, { state, date })
    if (postings.length === 0) return ""

    const balances = ownBalances(accountId, state)
    // Some tools check balances only once a day
    const isNewDay = own !== undefined && own.date !== "" && own.date < date
    const transaction: Transaction = {
      ...placeOf(recorded),
      ...{ date, payee: accountId },
      ...described(event, before, recorded),
      carried: isNewDay ? ownBalances(accountId, before).filter(({ account }) => this.#totals.has(account)) : [],
      lines: postings.map(({ account, amount }): Line => {
        const balance = balances.find((own) => own.account === account)
        return { account, amount, ...(balance && { balance: balance.balance }) }
      })
    }
    return this.#write(transaction)
  }

  #postMoney(recorded: EventStore.RecordedEvent): string {
    const entry = this.#money.next(recorded)
    if (entry === undefined) return ""
    const { at, currency, note, payee, postings } = entry
    const date = new Date(at).toISOString().slice(0, 10)
    return this.#write({ ...placeOf(recorded), ...{ date, payee, note, currency }, tags: {}, carried: [], lines: postings })
  }

  /** The text of a transaction, after that which declares what it is the first to name. */
  #write(transaction: Transaction): string {
    const { currency, date, lines } = transaction
    if (date > this.#lastDate) this.#lastDate = date
    const first = this.#totals.add(lines, currency)
    const declared = first.currency === undefined ? "" : this.#format.currency(first.currency)
    return (
      declared + first.accounts.map((account) => this.#format.account(account, currency)).join("") + this.#format.transaction(transaction)
    )
  }

  /** The closing balances of all accounts: of customers by the fold, of the operator by the postings. */
  end(): string {
    if (this.#lastDate === "") return ""
    const own = [...this.#accounts].flatMap(([stream, { state }]) => ownBalances(StreamName.id(stream), state))
    return this.#format.closing(this.#lastDate, this.#totals.closing([...own, ...this.#money.receivables()]))
  }
}

/** Where an event stands in the log, and when it was written. */
const placeOf = (recorded: EventStore.RecordedEvent) => {
  const { id: event, position, revision, stream, type } = recorded
  return { at: HashChain.atOf(recorded), event, position, stream, revision, type }
}

/** What grants are called. */
const GRANTS: Readonly<Record<Lots.LotSource, string>> = {
  signup: "Sign-up credits",
  topup: "Top-up",
  subscription: "Subscription",
  promotion: "Promotion",
  adjustment: "Replacement of expired credits"
}

/** What an event is called, and what it tells of its call or grant. */
const described = (
  event: AccountEvent,
  before: Account.Account,
  recorded: EventStore.RecordedEvent
): Pick<Transaction, "note" | "tags"> => {
  switch (event._tag) {
    case "CreditsGranted":
      return { note: GRANTS[event.source], tags: { source: event.source } }
    case "CreditReserved":
      return { note: `Hold for ${event.operation}`, tags: callOf(event, event.reservationId) }
    case "OperationSucceeded":
      return { note: `Charge for ${Account.hold(before, event.reservationId)?.operation}`, tags: endedCall(event, before, recorded) }
    case "Refunded":
      return { note: event.stage === "reserved" ? "Release of a hold" : "Refund of a charge", tags: endedCall(event, before, recorded) }
    default:
      return { note: NOTES[event._tag] ?? event._tag, tags: {} }
  }
}

const NOTES: Readonly<Record<string, string>> = {
  LotExpired: "Expiry of credits",
  CreditsClawedBack: "Payment taken back",
  DebtRepaid: "Debt repaid",
  ClawbackReversed: "Payment returned"
}

const callOf = ({ operation, requestId }: { readonly operation: string; readonly requestId: string }, reservation: string): Tags => ({
  operation,
  request: requestId,
  reservation
})

/** The call that an event ends. The hold of a charge that is refunded is over; the event may still be correlated with a request. */
const endedCall = (
  { reservationId }: { readonly reservationId: string },
  before: Account.Account,
  recorded: EventStore.RecordedEvent
): Tags => {
  const hold = Account.hold(before, reservationId)
  if (hold !== undefined) return callOf(hold, reservationId)
  const request = HashChain.metadataOf(recorded)["$correlationId"]
  return { ...(typeof request === "string" ? { request } : {}), reservation: reservationId }
}

/** The balances of a customer by the fold. Debit positive, so credits that a customer has are negative. */
const ownBalances = (accountId: string, account: Account.Account): ReadonlyArray<Balance> => {
  const { available, receivable, reserved } = balancesOf(account)
  return [
    { account: Postings.available(accountId), balance: 0 - available },
    { account: Postings.reserved(accountId), balance: 0 - reserved },
    { account: Postings.receivable(accountId), balance: receivable }
  ]
}
