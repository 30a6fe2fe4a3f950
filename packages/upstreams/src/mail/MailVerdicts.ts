/**
 * What SPF, DKIM, DMARC and ARC say of a message (RFC 7208, 6376, 7489, 8617), by the name servers of `DnsResolver`. The checks run in a
 * worker thread, with bounds on memory and time, because the senders of messages mean no good.
 */
import { type Authentication, Dns } from "@millrace/core"
import { Context, type Duration, Effect, Layer, Semaphore } from "effect"
import { type DnsOutcome, type DnsValue, IN_DOUBT, type Received, UNCHECKED } from "./VerdictMessages.ts"
import * as VerdictThread from "./VerdictThread.ts"

export type { Received } from "./VerdictMessages.ts"

export class MailVerdicts extends Context.Service<
  MailVerdicts,
  {
    /**
     * Never fails: a check that DNS, its time limit or its memory prevents is a `temperror`. All are null for a message that asks for too
     * many checks.
     */
    readonly check: (message: Received) => Effect.Effect<Authentication>
  }
>()("@millrace/upstreams/mail/MailVerdicts") {}

export interface Options {
  /** The time limit of all checks of a message; 8 seconds by default. */
  readonly timeLimit?: Duration.Input
  /** The most memory that the checks under way may take for objects, in MiB; 256 by default. Bytes of messages do not count. */
  readonly memory?: number
  /** A thread that is idle for this long is ended; 1 minute by default. */
  readonly idleLimit?: Duration.Input
}

/** Messages that are checked at once. Most of them wait for name servers. */
const AT_ONCE = 128

/** Checks nothing. */
export const layerNone: Layer.Layer<MailVerdicts> = Layer.succeed(MailVerdicts, { check: () => Effect.succeed(UNCHECKED) })

/** SPF's mechanism `ptr`, which RFC 7208 advises against, never matches: the resolver has no PTR records. */
export const layer = ({
  timeLimit = "8 seconds",
  memory = 256,
  idleLimit = "1 minute"
}: Options = {}): Layer.Layer<MailVerdicts, never, Dns.DnsResolver> =>
  Layer.effect(
    MailVerdicts,
    Effect.gen(function* () {
      const dns = yield* Dns.DnsResolver
      const judge = yield* VerdictThread.make({ resolve: (domain, type) => outcomeOf(dns, domain, type), memory, idleLimit })
      const turns = yield* Semaphore.make(AT_ONCE)
      return {
        check: Effect.fn("MailVerdicts.check")(
          function* (message) {
            // One of those that were checked at once ended the thread, so each is checked once more, alone
            return yield* Effect.catch(turns.withPermit(judge(message)), () => turns.withPermits(AT_ONCE)(judge(message)))
          },
          Effect.timeoutOrElse({ duration: timeLimit, orElse: () => Effect.succeed(IN_DOUBT) }),
          Effect.catch((error) => Effect.as(Effect.logWarning(`A message was not checked: ${error.message}`), IN_DOUBT))
        )
      }
    })
  )

/** In the format of `node:dns`. */
const outcomeOf = (dns: Dns.DnsResolver["Service"], domain: string, type: string): Effect.Effect<DnsOutcome> => {
  const known = Dns.RecordType.literals.find((literal) => literal === type)
  if (known === undefined || known === "ANY") return Effect.succeed({ code: "ENODATA" })
  return dns.resolve({ domain, type: known }).pipe(
    Effect.match({
      onFailure: ({ _tag }): DnsOutcome => ({ code: _tag === "NotFound" ? "ENOTFOUND" : "ESERVFAIL" }),
      onSuccess: ({ records }): DnsOutcome => {
        const values = records.flatMap(valueOf)
        return values.length > 0 ? { values } : { code: "ENODATA" }
      }
    })
  )
}

const valueOf = (record: Dns.DnsRecord): ReadonlyArray<DnsValue> => {
  if ("ip" in record) return [record.ip]
  if ("text" in record) return [[record.text]]
  if ("exchange" in record) return [{ exchange: record.exchange, priority: record.priority }]
  return "host" in record ? [record.host] : []
}
