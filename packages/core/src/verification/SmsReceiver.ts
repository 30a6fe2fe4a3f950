/** Text messages at the host's public numbers: what brings them gives them to `receive`, and callers wait for their codes. */
import { Aggregate, type EventStore, Following, type Projection, type StateStore } from "@millrace/event-sourcing"
import { Clock, Context, type Duration, Effect, Layer, Schema } from "effect"
import { Vault, type VaultFailure } from "../vault/Vault.ts"
import type { Caller } from "../work/Contract.ts"
import { UpstreamNotConfigured, UpstreamUnavailable } from "../work/OperationError.ts"
import * as Expiries from "./Expiries.ts"
import * as RecentSms from "./RecentSms.ts"
import * as Services from "./Services.ts"
import * as Sms from "./Sms.ts"
import * as SmsTexts from "./SmsTexts.ts"
import * as SmsWaiters from "./SmsWaiters.ts"
import * as Verification from "./Verification.ts"

/** A message as its provider brings it. */
export interface IncomingSms {
  readonly source: Sms.Source
  /** The provider's id of the message. A message comes once under it. */
  readonly id: string
  /** A phone number or a name. */
  readonly from: string
  /** The number that it was sent to, in any notation with the country's code. */
  readonly to: string
  readonly text: string
}

/** The message was sent to no public number of this host. Nothing is kept of it. */
export class NotAPublicNumber extends Schema.TaggedError<NotAPublicNumber>()("NotAPublicNumber", {}) {
  override get message(): string {
    return "The message was sent to a number that is not one of this host's public numbers"
  }
}

/** Why a message was not kept: its provider should bring it again. */
export type ReceiveFailure = VaultFailure | Aggregate.Failure | StateStore.StateUnavailable

/** What a caller waits for. */
export interface Wait {
  /** E.164, one of `numbers`. */
  readonly number: string
  /** A part of the sender or the text, or a name of the service. Not empty. */
  readonly identifier: string
  readonly timeout: Duration.Input
  /** Milliseconds since 1970. Messages received after it count; by default those that come from now on. */
  readonly since?: number | undefined
}

export class SmsReceiver extends Context.Service<
  SmsReceiver,
  {
    /** Fails without public numbers. */
    readonly configured: Effect.Effect<void, UpstreamNotConfigured>
    /** The public numbers, E.164. */
    readonly numbers: ReadonlyArray<string>
    /** Keeps a message. It is durable when this returns; `repeated` if it was kept before. */
    readonly receive: (message: IncomingSms) => Effect.Effect<"received" | "repeated", NotAPublicNumber | ReceiveFailure>
    /**
     * Waits for the first message that matches and has a code; undefined if none comes in time. The outcome is recorded before this
     * returns; if the caller leaves, that it left.
     */
    readonly wait: (wait: Wait, caller: Caller) => Effect.Effect<SmsWaiters.Found | undefined, UpstreamUnavailable | UpstreamNotConfigured>
    /** Waits that run in this process. */
    readonly waiting: Effect.Effect<number>
    /** How far this process knows the messages that arrived, which wake its waits; undefined without public numbers. */
    readonly arrivals: Effect.Effect<Projection.Status | undefined>
  }
>()("@millrace/core/verification/SmsReceiver") {
  static readonly unconfigured: Layer.Layer<SmsReceiver> = Layer.sync(SmsReceiver, () => {
    const missing = Effect.fail(new UpstreamNotConfigured({ upstream: "verification codes" }))
    return {
      configured: missing,
      numbers: [],
      receive: () => Effect.fail(new NotAPublicNumber()),
      wait: () => missing,
      waiting: Effect.succeed(0),
      arrivals: Effect.undefined
    }
  })

  /** Receives at these numbers, E.164. */
  static readonly layer = (
    numbers: ReadonlyArray<string>
  ): Layer.Layer<SmsReceiver, never, Vault | EventStore.EventStore | StateStore.StateStore> =>
    Layer.effect(
      SmsReceiver,
      Effect.suspend(() => make(numbers))
    )
}

/** A number in E.164, however it is written; undefined if it cannot be one. */
export const e164 = (text: string): string | undefined => {
  const number = `+${text.replace(/^\s*(?:00|\+)/u, "").replaceAll(/[\s().-]/gu, "")}`
  return /^\+[1-9]\d{6,14}$/u.test(number) ? number : undefined
}

/** How long recording that a caller left may take. */
const PARTING = "5 seconds"

const unavailable = ({ message }: { readonly message: string }) =>
  new UpstreamUnavailable({ upstream: "verification codes", reason: message })

const make = Effect.fnUntraced(function* (numbers: ReadonlyArray<string>) {
  const vault = yield* Vault
  const messages = yield* Aggregate.make(Sms.Sms)
  const verifications = yield* Aggregate.make(Verification.Verification)
  const texts = yield* SmsTexts.make
  const recent = yield* RecentSms.make
  const waiters = SmsWaiters.make(recent, texts, yield* Expiries.make)
  yield* Effect.forkScoped(Following.retryForever(waiters.watch, () => {}))
  yield* Effect.forkScoped(texts.forget)

  const receive = Effect.fn("SmsReceiver.receive")(function* ({ from, id: providerId, source, text, to }: IncomingSms) {
    const number = e164(to)
    if (number === undefined || !numbers.includes(number)) return yield* new NotAPublicNumber()
    const id = vault.hmac("sms", JSON.stringify([source, providerId]))
    if ((yield* messages.read(id)).state.status === "received") return "repeated"
    const receivedAt = yield* Clock.currentTimeMillis
    const kept = yield* texts.keep(id, { sender: from, message: text, receivedAt })
    const { events } = yield* messages.execute(id, Sms.receive({ source, number, text: kept }))
    return events.length > 0 ? "received" : "repeated"
  })

  // Without a span: there may be ten thousand at once
  const wait = Effect.fnUntraced(function* ({ identifier, number, since, timeout }: Wait, { accountId, requestId, reservationId }: Caller) {
    const about = { accountId, reservationId, number }
    const record = (outcome: Verification.VerificationEvent) =>
      verifications.execute(Verification.idOf(reservationId), Verification.end(outcome), { $correlationId: requestId })
    const left = Effect.suspend(() => Effect.ignore(Effect.timeoutOption(record({ _tag: "WaitAbandoned", ...about }), PARTING)))
    return yield* waiters.next({ number, matches: Services.matcher(identifier), since, timeout }).pipe(
      Effect.tap((found) =>
        record(found === undefined ? { _tag: "WaitTimedOut", ...about } : { _tag: "CodeFound", ...about, sms: found.id })
      ),
      Effect.mapError(unavailable),
      Effect.onInterrupt(() => left)
    )
  })

  return SmsReceiver.of({ configured: Effect.void, numbers, receive, wait, waiting: Effect.sync(waiters.size), arrivals: recent.status })
})
