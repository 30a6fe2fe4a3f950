/**
 * The journal: one transaction in double entry for every event that moves money, for the tools of accountants. Postings come from the
 * events and asserted balances from the fold, so a tool that checks the journal compares the two after every event.
 */
import { Account, Postings } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Array, Effect, Schema, Stream } from "effect"
import { balancesOf } from "./AccountReplay.ts"
import { beancount } from "./journal/Beancount.ts"
import { csv } from "./journal/Csv.ts"
import type { Balance, Format, Line, Transaction } from "./journal/Format.ts"
import { jsonl } from "./journal/Jsonl.ts"
import { hledger, ledger } from "./journal/Ledger.ts"

export const formats: Readonly<Record<FormatName, Format>> = { hledger, ledger, beancount, csv, jsonl }
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

/** The whole log as a journal, in pieces of text. */
export const journal = (name: FormatName): Stream.Stream<string, EventStore.StoreUnavailable | UnreadableLog, EventStore.EventStore> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const store = yield* EventStore.EventStore
      const writer = new Writer(formats[name])
      const body = Stream.mapArrayEffect(store.readAll(EventStore.start), (events) =>
        Effect.try({
          try: () => Array.of(events.map((event) => writer.next(event)).join("")),
          catch: (error) => (error instanceof UnreadableLog ? error : unreadable(events[0], error))
        })
      )
      const end = Stream.suspend(() => Stream.make(writer.end()))
      return Stream.make(formats[name].opening).pipe(Stream.concat(body), Stream.concat(end))
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
  readonly #accounts = new Map<StreamName.StreamName, Own>()
  /** Every account that was posted to, with the sum of its postings. Debit positive. */
  readonly #totals = new Map<string, number>()
  #lastDate = ""

  constructor(format: Format) {
    this.#format = format
  }

  /** The text that an event adds: empty if it moves no money. */
  next(event: EventStore.RecordedEvent): string {
    if (StreamName.category(event.stream) !== Account.Account.category) return ""
    try {
      return this.#post(event)
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
    if (date > this.#lastDate) this.#lastDate = date

    const balances = ownBalances(accountId, state)
    const { id, position, revision, stream, type } = recorded
    // Some tools check balances only once a day
    const isNewDay = own !== undefined && own.date !== "" && own.date < date
    const transaction: Transaction = {
      ...{ date, at, event: id, position, stream, revision, type },
      carried: isNewDay ? ownBalances(accountId, before).filter(({ account }) => this.#totals.has(account)) : [],
      lines: postings.map(({ account, amount }): Line => {
        const balance = balances.find((own) => own.account === account)
        return { account, amount, ...(balance && { balance: balance.balance }) }
      })
    }
    return this.#count(postings) + this.#format.transaction(transaction)
  }

  /** Adds the postings to the totals. Returns the text that opens their new accounts. */
  #count(postings: ReadonlyArray<Postings.Posting>): string {
    let opened = ""
    for (const { account, amount } of postings) {
      if (!this.#totals.has(account)) opened += this.#format.account(account)
      this.#totals.set(account, (this.#totals.get(account) ?? 0) + amount)
    }
    return opened
  }

  /** The closing balances of all accounts: of customers by the fold, of the operator by the postings. */
  end(): string {
    if (this.#totals.size === 0) return ""
    const byFold = new Map<string, number>()
    for (const [stream, { state }] of this.#accounts) {
      for (const { account, balance } of ownBalances(StreamName.id(stream), state)) byFold.set(account, balance)
    }
    const balances = [...this.#totals].map(([account, total]): Balance => ({ account, balance: byFold.get(account) ?? total }))
    return this.#format.closing(this.#lastDate, balances)
  }
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
