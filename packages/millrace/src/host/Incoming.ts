/** What comes to a host beside calls: calls of other hosts, mail, text messages and proxied connections. Their options, and the settings that follow from these. */
import type { ProxyNode } from "@millrace/core"
import type { SmtpServer } from "@millrace/upstreams/mail"
import { type Duration, Effect, Option } from "effect"
import * as ClusterSettings from "../ClusterSettings.ts"
import * as MailSettings from "../MailSettings.ts"
import * as ProxySettings from "../ProxySettings.ts"
import * as Setting from "../Setting.ts"
import * as SmsSettings from "../SmsSettings.ts"
import * as Given from "./Given.ts"

/** Two files in PEM. */
export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
}

export interface ClusterOptions {
  /**
   * Where the other hosts of the store reach this one: an IP address of this machine or of a private network, and a port, such as
   * `10.0.0.5:7400`.
   */
  readonly address: string
  /** Where this host listens for the others, if not there, such as `0.0.0.0:7400` in a container. */
  readonly listen?: string
}

export interface MailOptions {
  /** The domain of the addresses of inboxes, in lower case, whose MX is this host or another on the store. */
  readonly domain: string
  /** Where mail is received by SMTP, such as `0.0.0.0:25`: nowhere by default. Port 0 is any that is free. */
  readonly listen?: string
  /** For STARTTLS, or on port 465 for TLS from the first byte. The files are read again when they change. */
  readonly tls?: CertificateFiles
  /** Bounds of the SMTP server, such as the bytes of a message. */
  readonly limits?: SmtpServer.Limits
}

export interface SmsOptions {
  /** The public phone numbers at which callers wait for codes, such as `+15005550006`. The same at all hosts on the store. */
  readonly numbers: ReadonlyArray<string>
  /** Auth token of Twilio, which posts to `/hooks/sms/twilio`. */
  readonly twilioToken?: string
  /** Auth token of Plivo, which posts to `/hooks/sms/plivo`. */
  readonly plivoToken?: string
  /** Signature secret of Vonage, which posts to `/hooks/sms/vonage`. */
  readonly vonageSecret?: string
  /** Signing key of MessageBird, which posts to `/hooks/sms/messagebird`. */
  readonly messagebirdKey?: string
  /** An SMSC that brings messages by SMPP 3.4: `smpp://name:password@smsc.example.com:2775`, or `ssmpp:` for TLS. */
  readonly smpp?: string
  /** The address under which providers post. Needed behind a proxy that changes the host's name; what the call says by default. */
  readonly publicUrl?: string
}

export interface ProxyOptions {
  /** Where an HTTP proxy is served, such as `0.0.0.0:8080`: nowhere by default. Port 0 is any that is free. */
  readonly listen?: string
  /** Where a SOCKS 5 proxy is served: nowhere by default. */
  readonly socks?: string
  /** The country of this node, by ISO 3166-1, such as `DE`. A node needs it, unless it connects through other proxies. */
  readonly country?: string
  /** The region of this node within its country. */
  readonly region?: string
  /** The name or address that clients are told: where the node listens by default. */
  readonly host?: string
  /** With it the HTTP proxy speaks TLS too, on the same port. */
  readonly tls?: CertificateFiles
  /** Addresses of this machine that connections leave from: the system chooses by default. */
  readonly exits?: ReadonlyArray<string>
  /** A file with other proxies to connect through, as of the flag `--proxy-upstreams`. */
  readonly upstreamsFile?: string
  /** How long a session lasts that is opened here: an hour by default. Milliseconds, or such as `"5 minutes"`. */
  readonly lifetime?: Duration.Input
  /** The most bytes of a session, in both directions together: 1 GiB by default. */
  readonly byteLimit?: number
  /** The most connections of a session at once, at each node: 64 by default. */
  readonly connectionLimit?: number
}

/** Where a host listens itself, with the ports that were chosen. HTTP is served by whoever mounts the host. */
export interface Addresses {
  /** Absent unless this host receives mail. */
  readonly smtp?: Setting.Listening
  /** The node as callers are told of it. Absent unless this host serves one. */
  readonly proxy?: ProxyNode
}

// rules

/** A text that a setting of the command line takes too. */
const setting = ({ expected, parse, secret = false }: Setting.Kind<unknown>): Given.Rule => ({
  ...Given.rule(expected, (value) => typeof value === "string" && parse(value) !== undefined),
  secret
})

/** Several of them. */
const settings = (give: string, { parse }: Pick<Setting.Kind<unknown>, "parse">): Given.Rule =>
  Given.rule(give, (value) => Array.isArray(value) && value.every((one) => typeof one === "string") && parse(value.join(",")) !== undefined)

const tlsOf = (what: string): Given.Rule =>
  Given.within(
    what,
    { certFile: Given.text("the path of a certificate in PEM"), keyFile: Given.text("the path of its key in PEM") },
    Given.needing("certFile", "keyFile")
  )

const count = Given.rule("a whole number of at least 1", Given.isInt(1))
const secret = Given.text("the secret as text")

const COUNTS = ["size", "buffered", "connections", "connectionsOfClient", "connectionsPerMinute", "recipientsPerMinute", "recipients"]
const TIMES = ["idle", "session", "accept", "receive", "drain", "renew"]
const LIMITS: Given.Rules = Object.fromEntries([...COUNTS.map((name) => [name, count]), ...TIMES.map((name) => [name, Given.duration])])

export const CLUSTER = Given.within(
  "cluster",
  { address: setting(ClusterSettings.address), listen: setting(Setting.hostAndPort) },
  Given.needing("address")
)

export const MAIL = Given.within(
  "mail",
  {
    domain: setting(MailSettings.domain),
    listen: setting(Setting.hostAndPort),
    tls: tlsOf("mail.tls"),
    limits: Given.within("mail.limits", LIMITS)
  },
  (given) => Given.needing("domain")(given) ?? Given.useless(given, ["tls", "limits"], ["listen"])
)

export const SMS = Given.within(
  "sms",
  {
    numbers: settings('an array such as ["+15005550006"]', SmsSettings.numbers),
    twilioToken: secret,
    plivoToken: secret,
    vonageSecret: secret,
    messagebirdKey: secret,
    smpp: setting(SmsSettings.smsc),
    publicUrl: setting(SmsSettings.address)
  },
  Given.needing("numbers")
)

const OF_NODE = ["country", "region", "host", "tls", "exits", "upstreamsFile"]

export const PROXY = Given.within(
  "proxy",
  {
    listen: setting(Setting.hostAndPort),
    socks: setting(Setting.hostAndPort),
    country: setting(ProxySettings.country),
    region: setting(ProxySettings.region),
    host: Given.text("a name or an address"),
    tls: tlsOf("proxy.tls"),
    exits: settings("an array of IP addresses of this machine", ProxySettings.exits),
    upstreamsFile: Given.text("the path of a file"),
    lifetime: Given.duration,
    byteLimit: count,
    connectionLimit: count
  },
  (given) => Given.useless(given, OF_NODE, ["listen", "socks"])
)

// settings

const parsed = <A>(text: string | undefined, { parse }: Pick<Setting.Kind<A>, "parse">): Option.Option<A> =>
  Option.fromUndefinedOr(text === undefined ? undefined : parse(text))

const all = <A>(texts: ReadonlyArray<string> | undefined, kind: Pick<Setting.Kind<A>, "parse">) => parsed(texts?.join(","), kind)

export const mailSettings = (mail: MailOptions | undefined): MailSettings.Settings =>
  mail === undefined
    ? MailSettings.NONE
    : {
        mailDomain: Option.some(mail.domain),
        smtp: parsed(mail.listen, Setting.hostAndPort),
        smtpTls: Option.map(Option.fromUndefinedOr(mail.tls), ({ certFile, keyFile }) => ({ certificate: certFile, key: keyFile })),
        ...(mail.limits === undefined ? {} : { limits: mail.limits })
      }

export const smsSettings = ({ numbers, ...sms }: Partial<SmsOptions> = {}): SmsSettings.Settings => ({
  smsNumbers: all(numbers, SmsSettings.numbers),
  smsTwilioToken: Option.fromUndefinedOr(sms.twilioToken),
  smsPlivoToken: Option.fromUndefinedOr(sms.plivoToken),
  smsVonageSecret: Option.fromUndefinedOr(sms.vonageSecret),
  smsMessagebirdKey: Option.fromUndefinedOr(sms.messagebirdKey),
  smpp: parsed(sms.smpp, SmsSettings.smsc),
  smsUrl: parsed(sms.publicUrl, SmsSettings.address)
})

export const clusterSettings = (cluster: Partial<ClusterOptions> = {}): ClusterSettings.Settings => ({
  cluster: parsed(cluster.address, ClusterSettings.address),
  clusterListen: parsed(cluster.listen, Setting.hostAndPort)
})

export const proxySettings = (proxy: ProxyOptions = {}): ProxySettings.Settings => ({
  proxy: parsed(proxy.listen, Setting.hostAndPort),
  socks: parsed(proxy.socks, Setting.hostAndPort),
  proxyTls: Option.map(Option.fromUndefinedOr(proxy.tls), ({ certFile, keyFile }) => ({ certificate: certFile, key: keyFile })),
  proxyCountry: parsed(proxy.country, ProxySettings.country),
  proxyRegion: Option.fromUndefinedOr(proxy.region),
  proxyHost: Option.fromUndefinedOr(proxy.host),
  proxyExits: all(proxy.exits, ProxySettings.exits),
  proxyUpstreams: Option.fromUndefinedOr(proxy.upstreamsFile)
})

// addresses

/** Where the services listen that were built from the settings. */
export const addresses: Effect.Effect<Addresses> = Effect.gen(function* () {
  const smtp = yield* Effect.serviceOption(MailSettings.SmtpListening)
  const proxy = yield* Effect.serviceOption(ProxySettings.Serving)
  return {
    ...Option.match(smtp, { onNone: () => ({}), onSome: ({ host, port }) => ({ smtp: { host, port } }) }),
    ...Option.match(proxy, { onNone: () => ({}), onSome: (proxy) => ({ proxy }) })
  }
})
