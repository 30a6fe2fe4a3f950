/**
 * Messages from an SMSC, by SMPP 3.4. A message is acknowledged when it is durable. A broken connection is made again, with pauses that
 * grow to a minute. The SMSC must let as many messages be unanswered as a long message has parts.
 */
/// <reference path="./smpp.d.ts" />
import { hash } from "node:crypto"
import { Metrics, SmsReceiver } from "@millrace/core"
import { Clock, Deferred, Duration, Effect, Layer, Random, Schema, type Scope } from "effect"
import type { Pdu, Session, Smpp } from "smpp"
import { Parts, partOf, type Whole } from "./SmppMessage.ts"

export interface Options {
  /** `smpp://USER:PASSWORD@HOST:PORT`, or `ssmpp:` for TLS. */
  readonly url: URL
  /** How often the connection is tested while nothing comes: 30 seconds by default. */
  readonly enquireEvery?: Duration.Input
  /** The first pause before a new connection: one second by default. */
  readonly retryAfter?: Duration.Input
  /** How long the SMSC may take to open the connection, and to answer: 10 seconds by default. */
  readonly answerWithin?: Duration.Input
}

class Disconnected extends Schema.TaggedError<Disconnected>()("Disconnected", { reason: Schema.String }) {
  override get message(): string {
    return `The connection to the SMSC ended: ${this.reason}`
  }
}

// Statuses of answers (SMPP 3.4, section 5.1.3)
const OK = 0x00
const WRONG_DESTINATION = 0x0b
/** The SMSC delivers the message again. */
const TEMPORARY = 0x64

/** The most parts of incomplete messages, and how long they may take: less than SMSCs wait for answers. */
const MOST_INCOMPLETE = 1_000
const INCOMPLETE = Duration.toMillis("20 seconds")
const LONGEST_PAUSE = Duration.toMillis("1 minute")
const PATIENCE = "10 seconds"

const connected = Metrics.gauge("millrace.sms.smsc.connected", "1 while the SMSC has accepted this host's connection, else 0")({})

/** Receives for as long as the scope is open. `bound`: whether the SMSC has accepted this connection, and it has not ended since. */
export const connect = (options: Options): Effect.Effect<{ readonly bound: Effect.Effect<boolean> }, never, SmsReceiver | Scope.Scope> =>
  Effect.gen(function* () {
    const receiver = yield* SmsReceiver
    let bound = false
    yield* Metrics.observe(connected, () => ({ value: bound ? 1 : 0 }))
    yield* Effect.forkScoped(
      reconnecting(receiver, options, (now) => {
        bound = now
      })
    )
    return { bound: Effect.sync(() => bound) }
  })

export const layer = (options: Options): Layer.Layer<never, never, SmsReceiver> => Layer.effectDiscard(connect(options))

/** `tell` is told when a connection is bound, and when it has ended. */
const reconnecting = ({ receive }: SmsReceiver["Service"], options: Options, tell: (bound: boolean) => void) =>
  Effect.gen(function* () {
    // Loaded by hosts that use it
    const { default: smpp } = yield* Effect.promise(() => import("smpp"))
    const first = Duration.toMillis(options.retryAfter ?? "1 second")
    for (let attempt = 0; ; attempt++) {
      let wasBound = false
      const error = yield* connection(smpp, receive, options, () => {
        wasBound = true
        tell(true)
      })
      tell(false)
      if (wasBound) attempt = 0
      yield* Effect.logWarning(error.message)
      const pause = Math.min(LONGEST_PAUSE, first * 2 ** Math.min(attempt, 10))
      yield* Effect.sleep(Math.ceil(pause * (1 - (yield* Random.next) / 2)))
    }
  })

/** One connection until its end, and why it ended. `onBound` is called once it is bound. */
const connection = (
  smpp: Smpp,
  receive: SmsReceiver["Service"]["receive"],
  { answerWithin = PATIENCE, enquireEvery = "30 seconds", url }: Options,
  onBound: () => void
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { closed, connected, session } = yield* connecting(smpp, url)
      const answerTo = (send: (answered: (pdu: Pdu) => void) => boolean) => inTime(answered(send), answerWithin)
      const serve = Effect.gen(function* () {
        yield* inTime(connected, answerWithin)
        const bind = { system_id: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
        yield* answerTo((answered) => session.bind_transceiver(bind, answered))
        onBound()
        yield* Effect.logInfo("Bound to the SMSC")
        return yield* Effect.forever(
          Effect.andThen(
            Effect.sleep(enquireEvery),
            answerTo((answered) => session.enquire_link(answered))
          )
        )
      })
      yield* listening(session, receive)
      return yield* Effect.flip(Effect.raceFirst(closed, serve))
    })
  ).pipe(Effect.catch((error) => Effect.succeed(error)))

/** Sends a request, and waits for its answer. */
const answered = (send: (answered: (pdu: Pdu) => void) => boolean): Effect.Effect<void, Disconnected> =>
  Effect.callback((resume) => {
    const isSent = send(({ command, command_status }) =>
      resume(command_status === OK ? Effect.void : Effect.fail(new Disconnected({ reason: `${command} has status ${command_status}` })))
    )
    if (!isSent) resume(Effect.fail(new Disconnected({ reason: "it cannot be written to" })))
  })

const inTime = (effect: Effect.Effect<void, Disconnected>, duration: Duration.Input): Effect.Effect<void, Disconnected> =>
  Effect.timeoutOrElse(effect, { duration, orElse: () => Effect.fail(new Disconnected({ reason: "no answer in time" })) })

/** A session that is being connected, and ends with the scope. Nothing here waits: an SMSC may leave a connection half open for ever. */
const connecting = (smpp: Smpp, url: URL) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const address = new URL(url)
      address.username = ""
      address.password = ""
      const connected = Deferred.makeUnsafe<void>()
      const closed = Deferred.makeUnsafe<never, Disconnected>()
      const close = (reason: string) => Deferred.doneUnsafe(closed, Effect.fail(new Disconnected({ reason })))
      const session: Session = smpp.connect({ url: address.href }, () => Deferred.doneUnsafe(connected, Effect.void))
      session.on("error", ({ message }: Error) => {
        session.destroy()
        close(message)
      })
      session.on("close", () => close("it was closed"))
      return { session, connected: Deferred.await(connected), closed: Deferred.await(closed) }
    }),
    ({ session }) => Effect.sync(() => session.destroy())
  )

/** Answers what the SMSC sends, until the scope ends. */
const listening = Effect.fnUntraced(function* (session: Session, receive: SmsReceiver["Service"]["receive"]) {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const parts = new Parts<Pdu>(INCOMPLETE, MOST_INCOMPLETE)
  const answer = (pdus: ReadonlyArray<Pdu>, status: number) => {
    for (const pdu of pdus) session.send(pdu.response({ command_status: status }))
  }
  const deliver = (whole: Whole<Pdu>) =>
    receive({ source: "smpp", id: idOf(whole, clock.currentTimeMillisUnsafe()), from: whole.from, to: whole.to, text: whole.text }).pipe(
      Effect.as(OK),
      Effect.catch(({ _tag }) => Effect.succeed(_tag === "NotAPublicNumber" ? WRONG_DESTINATION : TEMPORARY)),
      Effect.map((status) => answer(whole.waiting, status))
    )
  session.on("deliver_sm", (pdu: Pdu) => {
    const part = partOf(pdu)
    if (part === undefined) return answer([pdu], OK)
    const whole = parts.add(part, pdu, clock.currentTimeMillisUnsafe())
    if (whole !== undefined) run(deliver(whole))
  })
  session.on("enquire_link", (pdu: Pdu) => answer([pdu], OK))
  session.on("unbind", (pdu: Pdu) => {
    answer([pdu], OK)
    session.close()
  })
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.delay(
        Effect.sync(() => answer(parts.giveUp(clock.currentTimeMillisUnsafe()), TEMPORARY)),
        "1 second"
      )
    )
  )
})

const WINDOW = Duration.toMillis("10 minutes")

/**
 * SMPP names no message. One that an SMSC delivers again, because it lost the answer, is told by its content: the same text from the same
 * sender within ten minutes is one message.
 */
const idOf = ({ from, text, to }: Whole<Pdu>, now: number): string =>
  hash("sha256", JSON.stringify([from, to, text, Math.floor(now / WINDOW)]), "base64url")
