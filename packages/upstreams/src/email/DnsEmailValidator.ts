/** `EmailValidator` by syntax, DNS, and lists of disposable domains and roles. The first validation loads the lists. */
import { Dns, Email } from "@millrace/core"
import { Effect, Layer, Result } from "effect"
import { isDisposable, isRole } from "./Lists.ts"
import * as MailAddress from "./MailAddress.ts"
import * as MailDomain from "./MailDomain.ts"

/** The most concurrent domain lookups of a call, so that a batch with many dead domains is as fast as one with one. */
const CONCURRENCY = 50

/** The report on a malformed address, whose domain is not looked up. */
const malformed = (email: string): Email.EmailReport => ({
  email,
  valid: false,
  disposable: false,
  domain: MailAddress.domainOf(email),
  syntax_valid: false,
  mx_records: false,
  score: 0
})

/** Builds reports from addresses and the mail routing of their domains. */
const reporter = Effect.fnUntraced(function* (options: { readonly consensus: boolean }) {
  const isDisposableDomain = yield* isDisposable(options)
  const isRoleName = yield* isRole
  return (email: string, { local, domain }: MailAddress.MailAddress, found: MailDomain.MailDomain): Email.EmailReport => {
    const disposable = isDisposableDomain(domain)
    const score = MailDomain.scoreOf({ ...found, disposable, role: isRoleName(local) })
    return { email, valid: score > 0, disposable, domain, syntax_valid: true, mx_records: found.delivery === "mx", score }
  }
})

/**
 * With `consensus`, both lists of disposable domains are used. A malformed address is reported without a query of DNS.
 */
export const layer: Layer.Layer<Email.EmailValidator, never, Dns.DnsResolver> = Layer.effect(
  Email.EmailValidator,
  Effect.gen(function* () {
    const resolver = yield* Dns.DnsResolver
    return {
      validate: Effect.fn("DnsEmailValidator.validate")(function* ({ email, consensus }) {
        const address = MailAddress.parse(email)
        if (address === undefined) return malformed(email)
        const report = yield* reporter({ consensus })
        return report(email, address, yield* MailDomain.inspect(resolver, address.domain))
      }),
      validateAll: Effect.fn("DnsEmailValidator.validateAll")(function* ({ emails, consensus }) {
        const report = yield* reporter({ consensus })
        const addresses = emails.map((email) => ({ email, address: MailAddress.parse(email) }))
        const domains = new Set(addresses.flatMap(({ address }) => address?.domain ?? []))
        const inspected = yield* Effect.forEach(
          domains,
          (domain) => Effect.map(Effect.result(MailDomain.inspect(resolver, domain)), (found) => [domain, found] as const),
          { concurrency: CONCURRENCY }
        )
        const found = new Map(inspected)
        return addresses.map(({ email, address }) => {
          const domain = address && found.get(address.domain)
          return address === undefined || domain === undefined
            ? Result.succeed(malformed(email))
            : Result.map(domain, (domain) => report(email, address, domain))
        })
      })
    }
  })
)
