/** The settings of verification codes: the public numbers, and what brings their messages. */
import { e164, SmsReceiver } from "@millrace/core"
import { SmsHooks } from "@millrace/http"
import { SmppSource } from "@millrace/upstreams"
import { Config, Effect, Layer, Option, Redacted } from "effect"
import * as Setting from "./Setting.ts"

const secret = (flag: string, description: string) =>
  Setting.optional(flag, description, { metavar: "secret", parse: Setting.text, expected: "a text" })

const isNumber = (text: string): boolean => text.startsWith("+") && e164(text) !== undefined

const addressOf = (text: string): URL | undefined => (/^https?:/u.test(text) && URL.canParse(text) ? new URL(text) : undefined)

const smscOf = (text: string): URL | undefined => (/^ss?mpp:\/\/[^/]/u.test(text) && URL.canParse(text) ? new URL(text) : undefined)

const numbers = {
  metavar: "numbers",
  parse: Setting.list(isNumber),
  expected: "numbers such as +15005550006, separated by commas"
}

export const flags = {
  smsNumbers: Setting.optional(
    "sms-numbers",
    "Public phone numbers at which callers wait for verification codes, separated by commas; none when left out",
    numbers
  ),
  smsTwilioToken: secret("sms-twilio-token", "Auth token of Twilio, whose messages come to /hooks/sms/twilio"),
  smsPlivoToken: secret("sms-plivo-token", "Auth token of Plivo, whose messages come to /hooks/sms/plivo"),
  smsVonageSecret: secret("sms-vonage-secret", "Signature secret of Vonage, whose messages come to /hooks/sms/vonage"),
  smsMessagebirdKey: secret("sms-messagebird-key", "Signing key of MessageBird, whose messages come to /hooks/sms/messagebird"),
  smpp: Setting.optional("smpp", "SMSC that brings messages by SMPP 3.4, with name and password; better by the variable", {
    metavar: "url",
    parse: smscOf,
    expected: "such as smpp://name:password@smsc.example.com:2775, or ssmpp: for TLS"
  }),
  smsUrl: Setting.optional(
    "sms-url",
    "Address under which these providers call this server. Needed behind a proxy that changes the host's name; what the call says when left out",
    { metavar: "url", parse: addressOf, expected: "such as https://api.example.com" }
  )
}

export interface Settings {
  readonly smsNumbers: Option.Option<ReadonlyArray<string>>
  readonly smsTwilioToken: Option.Option<string>
  readonly smsPlivoToken: Option.Option<string>
  readonly smsVonageSecret: Option.Option<string>
  readonly smsMessagebirdKey: Option.Option<string>
  readonly smpp: Option.Option<URL>
  readonly smsUrl: Option.Option<URL>
}

/** Receives at the public numbers. Without any, waits are answered that they are not set up. */
export const receiver = ({ smsNumbers }: Pick<Settings, "smsNumbers">) =>
  Option.match(smsNumbers, { onNone: () => SmsReceiver.unconfigured, onSome: (numbers) => SmsReceiver.layer(numbers) })

/** The receiver that the environment names, for commands without these flags. */
export const byEnvironment = Effect.map(Config.String("MILLRACE_SMS_NUMBERS").pipe(Config.option), (text) =>
  receiver({ smsNumbers: Option.flatMapNullishOr(text, numbers.parse) })
)

/** The hooks of providers and the connection to an SMSC; none without public numbers. */
export const sources = (settings: Settings) => {
  if (Option.isNone(settings.smsNumbers)) return Layer.empty
  const given = {
    twilio: settings.smsTwilioToken,
    plivo: settings.smsPlivoToken,
    vonage: settings.smsVonageSecret,
    messagebird: settings.smsMessagebirdKey
  }
  const secrets = Object.entries(given).flatMap(([name, value]) =>
    Option.toArray(value).map((text) => [name, Redacted.make(text, { label: `secret of ${name}` })] as const)
  )
  const smsc = Option.match(settings.smpp, { onNone: () => Layer.empty, onSome: (url) => SmppSource.layer({ url }) })
  const hooks = SmsHooks.layer({
    secrets: Object.fromEntries(secrets),
    ...Option.match(settings.smsUrl, { onNone: () => ({}), onSome: (publicUrl) => ({ publicUrl }) })
  })
  return Layer.merge(hooks, smsc)
}
