/**
 * Invoices and credit notes. Each series has a stream for each month, `invoices-INV-2026-11`, in which every event issues one document: its
 * number follows from its place, so numbers have no gaps and none is given twice. A document is never changed. What goes back to a payer gets a
 * credit note; money that comes again, after a dispute that was won, gets an invoice that takes the credit note back.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { HashMap, Option, Result, Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"
import { Currency, Minor, Tax } from "./PaymentEvent.ts"

// events

/** A line of a document. Money in the smallest unit of its currency; `total` is `net` and `tax`. A deduction has negative amounts. */
export const Line = Schema.Struct({
  description: Schema.String,
  net: Schema.Int,
  tax: Schema.Int,
  total: Schema.Int,
  /** The lot of credits that it paid for. */
  lotId: Schema.String
})
export type Line = typeof Line.Type

const document = {
  /** `INV-2026-11-000001`. */
  number: Schema.String,
  accountId: Schema.String,
  paymentId: Schema.String,
  /** The gateway that took the money, or gave it back. */
  gateway: Schema.String,
  /** The event of the payment from which the document follows: its id. Each has one document. */
  cause: Schema.String,
  /** When that happened: the date of the document. */
  issuedAt: Timestamp,
  currency: Currency,
  lines: Schema.NonEmptyArray(Line),
  /** The tax that the amounts include, if any. */
  taxed: Schema.optionalKey(Tax),
  /** The sums of the lines. */
  net: Minor,
  tax: Minor,
  total: Minor,
  /** Who issues it: lines of text, as the host was configured. */
  seller: Schema.String
}

export const InvoiceEvent = Schema.TaggedUnion({
  InvoiceIssued: {
    ...document,
    /** The first invoice of the payment, where this one takes back what was credited for it. */
    invoice: Schema.optionalKey(Schema.String)
  },
  /** `invoice`: the one of which something is given back. */
  CreditNoteIssued: { ...document, invoice: Schema.String }
})
export type InvoiceEvent = typeof InvoiceEvent.Type

// series

export const SERIES = { InvoiceIssued: "INV", CreditNoteIssued: "CN" } as const satisfies Record<InvoiceEvent["_tag"], string>

type Series = (typeof SERIES)[InvoiceEvent["_tag"]]

/** The id of the stream of a series for the month, by UTC, of a time in milliseconds since 1970. */
export const seriesOf = (series: Series, at: Timestamp): string => `${series}-${new Date(at).toISOString().slice(0, 7)}`

/** The number of the document at a place in its stream, counted from 1. */
export const numberOf = (stream: string, place: number): string => `${stream}-${String(place).padStart(6, "0")}`

const NUMBER = /^(?<stream>(?:INV|CN)-\d{4}-\d{2})-(?<place>\d{6,15})$/u

/** The stream of a number, and the place in it; undefined for what is no number. */
export const parseNumber = (number: string): { readonly stream: string; readonly place: number } | undefined => {
  const { place = "0", stream } = NUMBER.exec(number)?.groups ?? {}
  const parsed = stream === undefined ? undefined : { stream, place: Number(place) }
  return parsed !== undefined && parsed.place > 0 && numberOf(parsed.stream, parsed.place) === number ? parsed : undefined
}

// state

/** A month of a series: how many documents it has, and their places by their causes. */
export interface Month {
  readonly count: number
  readonly places: HashMap.HashMap<string, number>
}

const evolve = ({ count, places }: Month, { cause, number }: InvoiceEvent): Month => {
  if (HashMap.has(places, cause)) throw new Error("An event of a payment has one document")
  if (parseNumber(number)?.place !== count + 1) throw new Error("Numbers follow one another")
  return { count: count + 1, places: HashMap.set(places, cause, count + 1) }
}

export const Invoice: Decider<Month, InvoiceEvent> = {
  category: "invoices",
  codec: EventCodec.make(InvoiceEvent),
  initial: { count: 0, places: HashMap.empty() },
  evolve
}

// decisions

/** A document without its number. */
export type Draft = {
  readonly [Tag in InvoiceEvent["_tag"]]: Omit<Extract<InvoiceEvent, { readonly _tag: Tag }>, "number">
}[InvoiceEvent["_tag"]]

/** Issues a document under the next number of its stream, once for its cause. */
export const issue =
  (stream: string, draft: Draft) =>
  ({ count, places }: Month): Decision<InvoiceEvent> =>
    Result.succeed(HashMap.has(places, draft.cause) ? [] : [{ ...draft, number: numberOf(stream, count + 1) }])

/** The number of the document of a cause; undefined before it was issued. */
export const numberFor = (stream: string, { places }: Month, cause: string): string | undefined =>
  Option.getOrUndefined(Option.map(HashMap.get(places, cause), (place) => numberOf(stream, place)))
