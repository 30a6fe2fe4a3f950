/** Messages of SMPP 3.4, and the parts of long ones: by the user data header (3GPP TS 23.040) or by `sar_` parameters. */
/// <reference path="./smpp.d.ts" />
import type { Message, Pdu } from "smpp"

/** A message, or a part of one. */
export interface Part {
  readonly from: string
  readonly to: string
  readonly text: string
  /** Where it belongs in a long message; undefined for a whole one. `number` from 1. */
  readonly of: { readonly reference: number; readonly total: number; readonly number: number } | undefined
}

/** Bits of `esm_class` that say that this is no message, but a receipt. */
const RECEIPT = 0x3c
/** `source_addr_ton` of an international number. */
const INTERNATIONAL = 1

const CONCATENATED_8 = 0x00
const CONCATENATED_16 = 0x08

/** The message of a `deliver_sm`; undefined for a receipt, and for a message that is no text. */
export const partOf = (pdu: Pdu): Part | undefined => {
  if (((pdu.esm_class ?? 0) & RECEIPT) !== 0) return undefined
  const message = messageOf(pdu)
  if (typeof message.message !== "string") return undefined
  const from = pdu.source_addr ?? ""
  return {
    from: pdu.source_addr_ton === INTERNATIONAL && /^\d+$/u.test(from) ? `+${from}` : from,
    to: pdu.destination_addr ?? "",
    text: message.message,
    of: placeOf(pdu, message)
  }
}

/** A long text may come in a parameter of its own. An empty text is none of either. */
const messageOf = ({ message_payload: payload, short_message: short = {} }: Pdu): Message => {
  if (payload === undefined || (short.message?.length ?? 0) > 0) return { message: "", ...short }
  return typeof payload === "string" || Buffer.isBuffer(payload) ? { message: payload } : payload
}

const placeOf = (pdu: Pdu, { udh = [] }: Message): Part["of"] => {
  for (const [id, length, ...data] of udh.map((element) => [...element])) {
    const [first = 0, second = 0, third = 0, fourth = 0] = data
    if (id === CONCATENATED_8 && length === 3) return valid({ reference: first, total: second, number: third })
    if (id === CONCATENATED_16 && length === 4) return valid({ reference: first * 256 + second, total: third, number: fourth })
  }
  const { sar_msg_ref_num: reference, sar_segment_seqnum: number, sar_total_segments: total } = pdu
  return reference === undefined || number === undefined || total === undefined ? undefined : valid({ reference, total, number })
}

const valid = (place: NonNullable<Part["of"]>): Part["of"] =>
  place.total > 1 && place.number >= 1 && place.number <= place.total ? place : undefined

/** A message that may have come in parts, with those that wait for its answer. */
export interface Whole<A> extends Omit<Part, "of"> {
  readonly waiting: ReadonlyArray<A>
}

interface Pending<A> {
  readonly texts: Map<number, string>
  readonly waiting: Array<A>
  readonly since: number
}

/** Joins parts. Those of a message that stays incomplete are given up after a time, and so are the oldest of too many. */
export class Parts<A> {
  readonly #pending = new Map<string, Pending<A>>()
  readonly #within: number
  readonly #most: number

  /** `within`: milliseconds that a message may take to arrive. `most`: incomplete messages. */
  constructor(within: number, most: number) {
    this.#within = within
    this.#most = most
  }

  /** The whole message, once its last part is here. `waiting` is who waits for the answer to this part. */
  add({ from, of, text, to }: Part, waiting: A, now: number): Whole<A> | undefined {
    if (of === undefined) return { from, to, text, waiting: [waiting] }
    const key = JSON.stringify([from, to, of.reference, of.total])
    const pending: Pending<A> = this.#pending.get(key) ?? { texts: new Map(), waiting: [], since: now }
    this.#pending.set(key, pending)
    pending.texts.set(of.number, text)
    pending.waiting.push(waiting)
    if (pending.texts.size < of.total) return undefined
    this.#pending.delete(key)
    const texts = [...pending.texts].sort(([a], [b]) => a - b)
    return { from, to, text: texts.map(([, text]) => text).join(""), waiting: pending.waiting }
  }

  /** Those who wait for messages that are given up. */
  giveUp(now: number): ReadonlyArray<A> {
    const given: Array<A> = []
    for (const [key, { since, waiting }] of this.#pending) {
      if (now - since < this.#within && this.#pending.size <= this.#most) break
      this.#pending.delete(key)
      given.push(...waiting)
    }
    return given
  }
}
