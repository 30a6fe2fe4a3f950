/** The settings of verification codes: the public numbers, and what brings their messages. */
import { e164, SmsReceiver, type Vault } from "@millrace/core"
import type { EventStore, StateStore } from "@millrace/event-sourcing"
import { SmsHooks } from "@millrace/http"
import { Config, Context, Effect, Layer, Option, Redacted, Struct } from "effect"
import { serverUrl } from "./ServerUrl.ts"
import * as Setting from "./Setting.ts"

const secret = (flag: string, description: string) =>
  Setting.optional(flag, description, { metavar: "secret", parse: Setting.text, expected: "a text", secret: true })

const isNumber = (text: string): boolean => text.startsWith("+") && e164(text) !== undefined

const addressOf = (text: string): URL | undefined => (/^https?:/u.test(text) && URL.canParse(text) ? new URL(text) : undefined)

export const address: Setting.Kind<URL> = { metavar: "url", parse: addressOf, expected: "such as https://api.example.com", secret: true }

export const smsc: Setting.Kind<URL> = {
  metavar: "url",
  parse: serverUrl(/^ss?mpp:\/\/[^/]/u),
  expected: "such as smpp://name:password@smsc.example.com:2775, or ssmpp: for TLS; % in a password is %25",
  secret: true
}

export const numbers = {
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
  smpp: Setting.optional("smpp", "SMSC that brings messages by SMPP 3.4, with name and password; better by the variable", smsc),
  smsUrl: Setting.optional(
    "sms-url",
    "Address under which these providers call this server. Needed behind a proxy that changes the host's name; --public-url, or what the call says, when left out",
    address
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
  /** Where providers call, unless `smsUrl` says another address. */
  readonly publicUrl?: Option.Option<URL>
}

/** The connection to an SMSC, and whether it is bound now. */
export class Smsc extends Context.Service<Smsc, { readonly bound: Effect.Effect<boolean> }>()("millrace/SmsSettings/Smsc") {}

/** What speaks SMPP is loaded only where there is an SMSC. */
const connected = (url: URL): Layer.Layer<Smsc, never, SmsReceiver> =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("@millrace/upstreams")),
      ({ SmppSource }) => Layer.effect(Smsc, SmppSource.connect({ url }))
    )
  )

type Needs = Vault.Vault | EventStore.EventStore | StateStore.StateStore

/**
 * Receives at the public numbers, also from an SMSC. Without any, waits are answered that they are not set up, and nothing is received.
 */
export const receiver = ({
  smpp,
  smsNumbers
}: Pick<Settings, "smsNumbers"> & Partial<Pick<Settings, "smpp">>): Layer.Layer<SmsReceiver, never, Needs> =>
  Option.match(smsNumbers, {
    onNone: () => SmsReceiver.unconfigured,
    onSome: (numbers) =>
      Option.match(smpp ?? Option.none(), { onNone: () => Layer.empty, onSome: connected }).pipe(
        Layer.provideMerge(SmsReceiver.layer(numbers))
      )
  })

/** The receiver that the environment names, for commands without these flags. */
export const byEnvironment: Effect.Effect<Layer.Layer<SmsReceiver, never, Needs>, Config.ConfigError> = Effect.map(
  Config.String("MILLRACE_SMS_NUMBERS").pipe(Config.option),
  (text) => receiver({ smsNumbers: Option.flatMapNullishOr(text, numbers.parse) })
)

const secretsOf = (settings: Settings): Readonly<Record<SmsHooks.Name, Option.Option<string>>> => ({
  twilio: settings.smsTwilioToken,
  plivo: settings.smsPlivoToken,
  vonage: settings.smsVonageSecret,
  messagebird: settings.smsMessagebirdKey
})

/** The providers whose messages are taken, for the document. */
export const hooked = (settings: Settings): ReadonlyArray<SmsHooks.Name> => {
  const secrets = secretsOf(settings)
  return Option.isNone(settings.smsNumbers) ? [] : Struct.keys(secrets).filter((name) => Option.isSome(secrets[name]))
}

/** The hooks of providers; none without public numbers. */
export const hooks = (settings: Settings) => {
  if (Option.isNone(settings.smsNumbers)) return Layer.empty
  const secrets = Object.entries(secretsOf(settings)).flatMap(([name, value]) =>
    Option.toArray(value).map((text) => [name, Redacted.make(text, { label: `secret of ${name}` })] as const)
  )
  return SmsHooks.layer({
    secrets: Object.fromEntries(secrets),
    ...Option.match(
      Option.orElse(settings.smsUrl, () => settings.publicUrl ?? Option.none()),
      { onNone: () => ({}), onSome: (publicUrl) => ({ publicUrl }) }
    )
  })
}
