/** What SPF, DKIM, DMARC and ARC say of a message (RFC 7208, 6376, 7489, 8617), by the name servers of `DnsResolver`. */
import { type Authentication, Dns } from "@millrace/core"
import { Context, type Duration, Effect, Layer } from "effect"
import { type AuthenticateResult, authenticate, type DNSResolver } from "mailauth"
import { linesOf } from "./Lines.ts"

export interface Received {
  readonly raw: Uint8Array
  /** The address of the client. */
  readonly ip: string
  /** What the client said after HELO or EHLO. */
  readonly helo: string
  /** Of MAIL FROM; null for a bounce. */
  readonly sender: string | null
}

export class MailVerdicts extends Context.Service<
  MailVerdicts,
  {
    /** Never fails: a check that DNS or its time limit prevents is a `temperror`. All are null for a message that asks for too many checks. */
    readonly check: (message: Received) => Effect.Effect<Authentication>
  }
>()("@millrace/upstreams/mail/MailVerdicts") {}

export interface Options {
  /** The time limit of all checks of a message; 8 seconds by default. */
  readonly timeLimit?: Duration.Input
}

const UNCHECKED: Authentication = { spf: null, dkim: null, dmarc: null, arc: null }
const IN_DOUBT: Authentication = { spf: "temperror", dkim: "temperror", dmarc: "temperror", arc: "temperror" }

/** Checks nothing. */
export const layerNone: Layer.Layer<MailVerdicts> = Layer.succeed(MailVerdicts, { check: () => Effect.succeed(UNCHECKED) })

/** SPF's mechanism `ptr`, which RFC 7208 advises against, never matches: the resolver has no PTR records. */
export const layer = ({ timeLimit = "8 seconds" }: Options = {}): Layer.Layer<MailVerdicts, never, Dns.DnsResolver> =>
  Layer.effect(
    MailVerdicts,
    Effect.map(Dns.DnsResolver, (dns) => ({
      check: Effect.fn("MailVerdicts.check")(
        function* (message) {
          if (asksTooMuch(message.raw)) return UNCHECKED
          const run = Effect.runPromiseWith(yield* Effect.context())
          const result = yield* Effect.tryPromise((signal) =>
            authenticate(bufferOf(message.raw), {
              ip: message.ip,
              helo: message.helo,
              ...(message.sender === null ? {} : { sender: message.sender }),
              disableBimi: true,
              // The library's type forgets that exchanges are objects
              resolver: ((domain, type) => run(answerOf(dns, domain, type), { signal })) as DNSResolver
            })
          )
          return verdictsOf(result)
        },
        Effect.timeoutOrElse({ duration: timeLimit, orElse: () => Effect.succeed(IN_DOUBT) }),
        // The library throws on what it does not foresee, and a message is not lost for that
        Effect.catch(() => Effect.succeed(IN_DOUBT))
      )
    }))
  )

const bufferOf = (raw: Uint8Array): Buffer => Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)

/** Real messages carry fewer. */
const MAX_SIGNATURES = 12

/** Of all headers. The library unfolds them in a time that grows with the square of their lines. */
const MAX_HEADER_LINES = 2_000
const MAX_HEADER_BYTES = 256 * 1024

/**
 * Each signature reads the whole message once more, and the library blocks this thread meanwhile: about 10 ns for a byte at worst, and as
 * long as for 65 bytes for each line. So the checks of a message block it for a third of a second at most.
 */
const MAX_WORK = 30_000_000
const BYTES_OF_LINE = 65

const SIGNATURE = /^(?:dkim-signature|arc-message-signature)[ \t]*:/gimu

const asksTooMuch = (raw: Uint8Array): boolean => {
  const bytes = bufferOf(raw)
  const end = bytes.indexOf("\r\n\r\n")
  const headers = end === -1 ? bytes.length : end
  if (headers > MAX_HEADER_BYTES || linesOf(bytes.subarray(0, headers)) > MAX_HEADER_LINES) return true
  const signatures = bytes.toString("latin1", 0, headers).match(SIGNATURE)?.length ?? 0
  return signatures > MAX_SIGNATURES || signatures * (bytes.length + BYTES_OF_LINE * linesOf(bytes)) > MAX_WORK
}

const verdictsOf = ({ spf, dkim, dmarc, arc }: AuthenticateResult): Authentication => {
  const signatures = dkim.results.map(({ status }) => status.result)
  return {
    spf: spf === false ? null : spf.status.result,
    // One signature that holds is enough (RFC 6376, section 6.1)
    dkim: signatures.find((result) => result === "pass") ?? signatures[0] ?? "none",
    dmarc: dmarc === false ? null : dmarc.status.result,
    arc: arc === false ? null : arc.status.result
  }
}

type Value = string | ReadonlyArray<string> | { readonly exchange: string; readonly priority: number }

/** In the format of `node:dns`, whose errors have codes that tell absence from failure. */
const answerOf = (dns: Dns.DnsResolver["Service"], domain: string, type: string): Effect.Effect<ReadonlyArray<Value>, Error> => {
  const known = Dns.RecordType.literals.find((literal) => literal === type)
  if (known === undefined || known === "ANY") return Effect.fail(failure("ENODATA"))
  return dns.resolve({ domain, type: known }).pipe(
    Effect.mapError((error) => failure(error._tag === "NotFound" ? "ENOTFOUND" : "ESERVFAIL")),
    Effect.map(({ records }) => records.flatMap(valueOf)),
    Effect.filterOrFail(
      (values) => values.length > 0,
      () => failure("ENODATA")
    )
  )
}

const failure = (code: string): Error => Object.assign(new Error(code), { code })

const valueOf = (record: Dns.DnsRecord): ReadonlyArray<Value> => {
  if ("ip" in record) return [record.ip]
  if ("text" in record) return [[record.text]]
  if ("exchange" in record) return [{ exchange: record.exchange, priority: record.priority }]
  return "host" in record ? [record.host] : []
}
