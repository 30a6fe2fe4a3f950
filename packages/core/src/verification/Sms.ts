/**
 * A text message that arrived at one of the host's public numbers. Stream `sms-{HMAC of the provider and its id of the message}`: it is
 * received once, for ever, so a delivery that is repeated or replayed changes nothing. Its sender and text are sealed outside the log, for a
 * day.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import type { Timestamp } from "../Timestamp.ts"

/** What brings messages. */
export const Source = Schema.Literals(["twilio", "plivo", "vonage", "messagebird", "smpp", "host"])
export type Source = typeof Source.Type

// events

export const SmsEvent = Schema.TaggedUnion({
  SmsReceived: {
    source: Source,
    /** The public number that it was sent to, E.164. */
    number: Schema.String,
    /** The sealed sender and text: the size in bytes and the SHA-256, base64url, of the stored bytes. */
    text: Schema.Struct({ size: Schema.Int, hash: Schema.String })
  }
})
export type SmsEvent = typeof SmsEvent.Type

// state

export type Sms = { readonly status: "absent" } | (Omit<SmsEvent, "_tag"> & { readonly status: "received"; readonly receivedAt: Timestamp })

const evolve = (sms: Sms, { _tag: _, ...received }: SmsEvent, at: Timestamp): Sms => {
  if (sms.status === "received") throw new Error("A message is received once")
  return { status: "received", ...received, receivedAt: at }
}

export const Sms: Decider<Sms, SmsEvent> = {
  category: "sms",
  codec: EventCodec.make(SmsEvent),
  initial: { status: "absent" },
  evolve
}

// decisions

/** Receives a message. Receiving it again decides nothing. */
export const receive =
  (received: Omit<SmsEvent, "_tag">) =>
  (sms: Sms): Decision<SmsEvent> =>
    Result.succeed(sms.status === "received" ? [] : [{ _tag: "SmsReceived", ...received }])
