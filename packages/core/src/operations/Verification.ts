/** The wait for a verification code at one of the host's public phone numbers. */
import { Effect, Schema } from "effect"
import { toIso } from "../Timestamp.ts"
import { SmsReceiver } from "../verification/SmsReceiver.ts"
import * as Operation from "../work/Operation.ts"
import { InvalidInput } from "../work/OperationError.ts"

/** The longest identifier, in Unicode code points. */
export const MAX_IDENTIFIER = 100

/** Seconds for which a call may wait. */
export const TIMEOUTS = [15, 30, 60, 90, 120] as const

export const VerificationResult = Schema.Struct({
  /** 4 to 8 digits. All fields are null if no message matched in time. */
  code: Schema.NullOr(Schema.String),
  /** The phone number or the name that the message came from. */
  sender: Schema.NullOr(Schema.String),
  /** The whole text. */
  message: Schema.NullOr(Schema.String),
  /** ISO 8601. */
  received_at: Schema.NullOr(Schema.String)
})

const NONE: typeof VerificationResult.Type = { code: null, sender: null, message: null, received_at: null }

/** With the offset to UTC, so that it names one instant. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/u

const time = Schema.String.check(
  Schema.makeFilter(
    (text: string) => (TIME.test(text) && !Number.isNaN(Date.parse(text))) || "expected a time such as 2026-01-31T12:00:00Z"
  )
)

const identifier = Schema.String.check(
  Schema.isMinLength(1),
  Schema.isMaxCodePoints(MAX_IDENTIFIER),
  Schema.makeFilter((text: string) => text.trim() !== "" || "expected a text that is not blank")
)

/** E.164. */
const phoneNumber = Schema.String.check(
  Schema.makeFilter((text: string) => /^\+[1-9]\d{6,14}$/u.test(text) || "expected a phone number such as +15005550006")
)

/** The most numbers that an error names. */
const MOST_NAMED = 10

const unknownNumber = (number: string, numbers: ReadonlyArray<string>): string =>
  `${number} is not a public number of this host, which has ${numbers.slice(0, MOST_NAMED).join(", ")}`

export const wait = Operation.make("verification.wait", {
  summary: "Wait for a verification code by SMS",
  description:
    "Waits at a public phone number of this host for the first text message that matches `identifier` and has a code of 4 to 8 digits. " +
    "`identifier` is a part of the sender or of the text in any case, or a known name of the service, such as `google`. " +
    "By default only messages that come after the call began count; with `since`, also earlier ones of the last 24 hours that were " +
    "received after that time. A wait that ends without a message is charged, and answers with nulls. A caller that closes the connection " +
    "before the end is not charged.\n\n" +
    "The numbers are public: everyone with a key of this host can read what arrives there. They are for testing only. Never use them for " +
    "an account that matters.",
  price: 5,
  unit: "session",
  local: true,
  route: {
    method: "POST",
    path: "/verify/wait",
    body: {
      /** What brings the message. */
      source: Schema.Literals(["sms"]),
      identifier,
      phone_number: phoneNumber,
      /** Seconds. */
      timeout: Schema.Literals(TIMEOUTS),
      since: Schema.optionalKey(time)
    }
  },
  success: VerificationResult,
  // The longest wait, and the time to record its outcome
  timeout: "150 seconds",
  configured: SmsReceiver.use(({ configured }) => configured),
  check: Effect.fnUntraced(function* ({ phone_number }) {
    const { configured, numbers } = yield* SmsReceiver
    yield* configured
    if (!numbers.includes(phone_number))
      return yield* new InvalidInput({ field: "phone_number", message: unknownNumber(phone_number, numbers) })
  }),
  run: Effect.fnUntraced(function* ({ identifier, phone_number, since, timeout }, caller) {
    const awaited = {
      number: phone_number,
      identifier,
      timeout: `${timeout} seconds`,
      since: since === undefined ? undefined : Date.parse(since)
    } as const
    const found = yield* SmsReceiver.use((receiver) => receiver.wait(awaited, caller))
    if (found === undefined) return { data: NONE }
    const { code, message, receivedAt, sender } = found
    return { data: { code, sender, message, received_at: toIso(receivedAt) } }
  }),
  example: {
    input: { source: "sms", identifier: "google", phone_number: "+15005550006", timeout: 60 },
    data: {
      code: "482913",
      sender: "Google",
      message: "G-482913 is your Google verification code.",
      received_at: "2026-01-31T12:00:07.000Z"
    }
  }
})
