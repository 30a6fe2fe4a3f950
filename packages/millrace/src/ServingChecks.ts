/** The checks of `doctor` of what the environment sets up to receive: mail, text messages, proxied connections. Each only where it is. */
import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { networkInterfaces } from "node:os"
import { createSecureContext } from "node:tls"
import { Dns } from "@millrace/core"
import { DnsClient } from "@millrace/upstreams"
import { Clock, Effect, Option } from "effect"
import { type Check, check, finding } from "./Check.ts"
import { isSet, set } from "./EnvironmentSettings.ts"
import { CommandFailed, fail, textOf } from "./Failure.ts"
import * as MailSettings from "./MailSettings.ts"
import * as ProxySettings from "./ProxySettings.ts"
import * as Setting from "./Setting.ts"
import * as SmsSettings from "./SmsSettings.ts"

const DAY = 24 * 60 * 60 * 1000

/** A certificate that ends earlier is reported. Days. */
const SOON = 14

// certificates

/** Whether a certificate and its key can be read, belong together, and are in force. */
const certificate = (name: string, variable: string) =>
  Effect.gen(function* () {
    if (!(yield* isSet(variable))) return []
    const look = Effect.gen(function* () {
      const files = yield* set(variable, MailSettings.tls)
      if (Option.isNone(files)) return yield* fail(`${variable} is empty`)
      const { validFrom, validTo } = yield* Effect.try({
        try: () => {
          const [cert, key] = [readFileSync(files.value.certificate), readFileSync(files.value.key)]
          createSecureContext({ cert, key })
          return new X509Certificate(cert)
        },
        catch: (error) => new CommandFailed(`the files of ${variable} cannot be used: ${textOf(error)}`)
      })
      const now = yield* Clock.currentTimeMillis
      const days = Math.floor((Date.parse(validTo) - now) / DAY)
      if (Date.parse(validFrom) > now)
        return finding(`${files.value.certificate} is in force from ${validFrom}`, "is this host's clock right?")
      if (days < 0) return finding(`${files.value.certificate} ended on ${validTo}`, "renew it: clients refuse it")
      return finding(`${files.value.certificate} ends in ${days} days`, days < SOON ? "renew it" : undefined, true)
    })
    return [yield* check(name, look)]
  })

// mail

/** The servers that senders bring mail of a domain to. */
const exchanges = Effect.fnUntraced(function* (domain: string) {
  const servers = yield* set("MILLRACE_DNS_SERVERS", { parse: Setting.list(DnsClient.isServer), expected: "IP addresses of name servers" })
  const { records } = yield* Dns.DnsResolver.use(({ resolve }) => resolve({ domain, type: "MX" })).pipe(
    Effect.provide(DnsClient.layer(Option.isSome(servers) ? { servers: servers.value } : {}))
  )
  return records.flatMap((record) => ("exchange" in record ? [record.exchange] : []))
})

const mail = Effect.gen(function* () {
  const receives = yield* isSet("MILLRACE_SMTP")
  if (!receives && !(yield* isSet("MILLRACE_MAIL_DOMAIN"))) return []
  const look = Effect.gen(function* () {
    const smtp = yield* set("MILLRACE_SMTP", Setting.hostAndPort)
    const domain = yield* set("MILLRACE_MAIL_DOMAIN", MailSettings.domain)
    if (Option.isNone(domain))
      return finding("MILLRACE_SMTP is set, and no domain", "set MILLRACE_MAIL_DOMAIN: the domain whose mail is received")
    const publish = `publish an MX record of ${domain.value} that names the server which receives for it`
    const found = yield* exchanges(domain.value).pipe(Effect.catchTag("NotFound", () => Effect.succeed([])))
    if (found.length === 0) return finding(`${domain.value} has no MX record, so no mail comes`, publish)
    const where = Option.match(smtp, {
      onNone: () => "which this host does not receive",
      onSome: ({ port }) => `received here at port ${port}`
    })
    return finding(`mail of ${domain.value} goes to ${found.join(", ")}, ${where}`)
  })
  return [yield* check("mail", look)]
})

// text messages

const SOURCES = [
  "MILLRACE_SMS_TWILIO_TOKEN",
  "MILLRACE_SMS_PLIVO_TOKEN",
  "MILLRACE_SMS_VONAGE_SECRET",
  "MILLRACE_SMS_MESSAGEBIRD_KEY",
  "MILLRACE_SMPP"
]

const sms = Effect.gen(function* () {
  const sources = yield* Effect.filter(SOURCES, isSet)
  if (sources.length === 0 && !(yield* isSet("MILLRACE_SMS_NUMBERS"))) return []
  const look = Effect.gen(function* () {
    const numbers = yield* set("MILLRACE_SMS_NUMBERS", SmsSettings.numbers)
    yield* set("MILLRACE_SMPP", SmsSettings.smsc)
    const url = yield* set("MILLRACE_SMS_URL", SmsSettings.address)
    if (Option.isNone(numbers)) return finding(`${sources.join(", ")} without numbers`, "set MILLRACE_SMS_NUMBERS: the public numbers")
    const detail = `messages to ${numbers.value.join(", ")}, by ${sources.length === 0 ? "nothing" : sources.join(", ")}`
    if (sources.length === 0) return finding(detail, "set the secret of a provider or MILLRACE_SMPP, unless another host has it", true)
    const isPlain = Option.exists(url, ({ protocol }) => protocol === "http:")
    return finding(detail, isPlain ? "MILLRACE_SMS_URL is not https: everybody on the way can read the codes" : undefined, true)
  })
  return [yield* check("messages", look)]
})

// proxies

const proxy = Effect.gen(function* () {
  if (!(yield* isSet("MILLRACE_PROXY")) && !(yield* isSet("MILLRACE_SOCKS"))) return []
  const look = Effect.gen(function* () {
    const listens = Option.toArray(yield* set("MILLRACE_PROXY", Setting.hostAndPort)).concat(
      Option.toArray(yield* set("MILLRACE_SOCKS", Setting.hostAndPort))
    )
    const country = yield* set("MILLRACE_PROXY_COUNTRY", ProxySettings.country)
    if (Option.isNone(country))
      return finding("a proxy node has no country", "set MILLRACE_PROXY_COUNTRY: where its connections leave from")
    if (!(yield* isSet("MILLRACE_PROXY_HOST")) && listens.some(({ host }) => ProxySettings.isAnywhere(host)))
      return finding("a proxy node listens on every address", "set MILLRACE_PROXY_HOST: the name or address that clients connect to")
    const exits = Option.getOrElse(yield* set("MILLRACE_PROXY_EXITS", ProxySettings.exits), (): ReadonlyArray<string> => [])
    const own = new Set(Object.values(networkInterfaces()).flatMap((addresses = []) => addresses.map(({ address }) => address)))
    const foreign = exits.filter((exit) => !own.has(exit))
    if (foreign.length > 0)
      return finding(`${foreign.join(", ")} is not of this machine`, "nothing can leave from there: MILLRACE_PROXY_EXITS")
    return finding(`a node in ${country.value} at ${listens.map(({ host, port }) => `${host}:${port}`).join(", ")}`)
  })
  return [yield* check("proxy", look)]
})

/** Those that the environment asks for. */
export const checks: Effect.Effect<ReadonlyArray<Check>> = Effect.map(
  Effect.all([mail, certificate("mail TLS", "MILLRACE_SMTP_TLS"), sms, proxy, certificate("proxy TLS", "MILLRACE_PROXY_TLS")]).pipe(
    Effect.orDie
  ),
  (found) => found.flat()
)
