/** The settings of temporary mail, and the layers that follow from them: inboxes, and the SMTP server that receives for them. */
import { type BlobStore, type Dns, type Inboxes, MailReader, type MailReceiver, Millrace, Vault } from "@millrace/core"
import type * as Mail from "@millrace/upstreams/mail"
import { Config, Context, Effect, Layer, Option } from "effect"
import { fail } from "./Failure.ts"
import * as Setting from "./Setting.ts"
import type { Stores } from "./StoreUrl.ts"

/** A name of at least two labels, in lower case: an address at one label is none. */
const domainOf = (text: string): string | undefined =>
  text.length <= 200 && /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]*[a-z][a-z0-9-]*$/u.test(text) ? text : undefined

const tlsOf = (text: string): Mail.SmtpServer.CertificateFiles | undefined => {
  const [certificate = "", key = "", ...more] = text.split(",").map((file) => file.trim())
  return certificate === "" || key === "" || more.length > 0 ? undefined : { certificate, key }
}

export const domain: Setting.Kind<string> = {
  metavar: "domain",
  parse: domainOf,
  expected: "a domain in lower case such as mail.example.com"
}

export const tls: Setting.Kind<Mail.SmtpServer.CertificateFiles> = {
  metavar: "cert,key",
  parse: tlsOf,
  expected: "two files, CERT,KEY"
}

export const flags = {
  smtp: Setting.optional(
    "smtp",
    "Address that receives mail for inboxes, by SMTP; needs --mail-domain. None when left out",
    Setting.hostAndPort
  ),
  mailDomain: Setting.optional(
    "mail-domain",
    "Domain of the addresses of inboxes, whose MX is this server or another on the store. Without it, no inboxes are created",
    domain
  ),
  smtpTls: Setting.optional(
    "smtp-tls",
    "Certificate and key, two PEM files, for STARTTLS, or on port 465 for TLS from the first byte. They are read again when they change",
    tls
  )
}

export interface Settings {
  readonly smtp: Option.Option<Setting.Listening>
  readonly mailDomain: Option.Option<string>
  readonly smtpTls: Option.Option<Mail.SmtpServer.CertificateFiles>
  /** Those of the server by default. */
  readonly limits?: Mail.SmtpServer.Limits
}

/** No mail comes to this process, and no inboxes are created. */
export const NONE: Settings = { smtp: Option.none(), mailDomain: Option.none(), smtpTls: Option.none() }

/** The domain that the environment names, for commands without these flags. No mail comes to them. */
export const byEnvironment = Effect.map(
  Config.String("MILLRACE_MAIL_DOMAIN").pipe(Config.option),
  (text): Settings => ({ ...NONE, mailDomain: Option.flatMapNullishOr(text, domain.parse) })
)

/** Where mail is received, for whoever announces it. */
export class SmtpListening extends Context.Service<SmtpListening, Setting.Listening>()("millrace/MailSettings/SmtpListening") {}

type Needs = Dns.DnsResolver | BlobStore.BlobStore | Stores

/** The inboxes that another host left end in their time here, too, without a domain. */
const without = Millrace.inboxes().pipe(Layer.provide(MailReader.none))

const receiving = ({ SmtpServer, MailVerdicts }: typeof Mail, domain: string, at: Setting.Listening, { limits = {}, smtpTls }: Settings) =>
  Layer.effect(SmtpListening, SmtpServer.listen({ ...at, domain, limits, ...(Option.isSome(smtpTls) ? { tls: smtpTls.value } : {}) })).pipe(
    Layer.provide([MailVerdicts.layer(), SmtpServer.layerKeyedQueueIds])
  )

/** What reads and receives mail is loaded only where there is a mail domain. */
const within = Effect.fnUntraced(function* (domain: string, settings: Settings) {
  const mail = yield* Effect.promise((): Promise<typeof Mail> => import("@millrace/upstreams/mail"))
  const inboxes = Millrace.inboxes({ domain }).pipe(Layer.provide(mail.MailParser.layer()))
  const { smtp } = settings
  return Option.isNone(smtp) ? inboxes : receiving(mail, domain, smtp.value, settings).pipe(Layer.provideMerge(inboxes))
})

export const layer = (settings: Settings): Layer.Layer<Inboxes | MailReceiver, unknown, Needs> => {
  const { mailDomain, smtp, smtpTls } = settings
  const chosen: Layer.Layer<Inboxes | MailReceiver, unknown, Needs | Vault.Vault> = Option.isSome(mailDomain)
    ? Layer.unwrap(within(mailDomain.value, settings))
    : Option.isSome(smtp) || Option.isSome(smtpTls)
      ? Layer.unwrap(fail("--smtp and --smtp-tls need --mail-domain: the domain whose mail is received"))
      : without
  return chosen.pipe(Layer.provide(Vault.Vault.layer))
}
