/** The settings of mail to people: the relay that sends it, or printing it. */

import { isIP } from "node:net"
import { MailRelay } from "@millrace/core"
import { Effect, Layer, Option } from "effect"
import * as Output from "./Output.ts"
import type * as PublicUrl from "./PublicUrl.ts"
import { serverUrl } from "./ServerUrl.ts"
import * as Setting from "./Setting.ts"

/** A relay, or `print`. */
type Relay = URL | "print"

const addressOf = serverUrl(/^smtps?:\/\/[^/]/u)

/** A relay that speaks SMTP. */
export const address: Setting.Kind<URL> = {
  metavar: "url",
  parse: addressOf,
  expected: "a relay such as smtp://name:password@relay.example.com:587, or smtps: for TLS; % in a password is %25",
  secret: true
}

export const relayOrPrint: Setting.Kind<Relay> = {
  ...address,
  parse: (text) => (text === "print" ? text : addressOf(text)),
  expected: `print, or ${address.expected}`
}

/** One address, without a name. */
export const sender: Setting.Kind<string> = {
  metavar: "address",
  parse: (text) => (/^[^\s<>,;:"@]{1,64}@[^\s<>,;:"@]{1,255}$/u.test(text) ? text : undefined),
  expected: "an address such as no-reply@example.com"
}

export const flags = {
  mailRelay: Setting.optional(
    "mail-relay",
    "Relay that sends sign-in links and price alerts, with name and password; better by the variable. print prints them. Without it, nobody signs up or signs in by mail",
    relayOrPrint
  ),
  mailFrom: Setting.optional("mail-from", "Sender of this mail; no-reply at the host of --public-url when left out", sender)
}

export interface Settings extends PublicUrl.Settings {
  readonly mailRelay: Option.Option<Relay>
  readonly mailFrom: Option.Option<string>
}

/** Prints each message, for trying things out: whoever reads the output can sign in. */
const printing = (forPeople: boolean): Layer.Layer<MailRelay> =>
  Layer.succeed(MailRelay, {
    configured: Effect.void,
    // The server continues when its output is closed
    send: ({ subject, text, to }) =>
      Effect.ignore(
        Output.line(forPeople ? `Mail to ${Output.printable(to)}: ${subject}\n\n${text}` : JSON.stringify({ mail: { to, subject, text } }))
      )
  })

/** The sender at the host of an address; at `localhost` where nothing says one. */
export const senderAt = (publicUrl: Option.Option<URL>): string => {
  const host = Option.match(publicUrl, { onNone: () => "localhost", onSome: ({ hostname }) => hostname })
  return `no-reply@${isIP(host) !== 0 || host.startsWith("[") ? "localhost" : host}`
}

/** What speaks SMTP is loaded only where there is a relay. */
const relaying = (url: URL, from: string): Layer.Layer<MailRelay> =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("@millrace/upstreams/mail-relay")),
      (SmtpRelay) => SmtpRelay.layer({ url, from })
    )
  )

export const layer = ({ mailFrom, mailRelay, publicUrl }: Settings, forPeople: boolean): Layer.Layer<MailRelay> =>
  Option.match(mailRelay, {
    onNone: () => MailRelay.unconfigured,
    onSome: (relay) =>
      relay === "print"
        ? printing(forPeople)
        : relaying(
            relay,
            Option.getOrElse(mailFrom, () => senderAt(publicUrl))
          )
  })
