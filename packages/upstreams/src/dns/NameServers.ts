/** Queries recursive name servers one after another, until one answers. */
import { randomInt } from "node:crypto"
import type { UpstreamUnavailable } from "@millrace/core"
import { Clock, Context, type Duration, Effect, Result, Semaphore } from "effect"
import * as Message from "./Message.ts"
import * as Resolution from "./Resolution.ts"
import type { ServerAddress } from "./ServerAddress.ts"
import * as Transport from "./Transport.ts"

export interface Options {
  readonly servers: ReadonlyArray<ServerAddress>
  readonly timeout: Duration.Input
  readonly attempts: number
  readonly concurrency: number
}

export interface Answered {
  readonly resolution: Resolution.Resolution
  /** Bytes of the message. */
  readonly bytes: number
  /** Milliseconds since 1970. */
  readonly at: number
}

/** Generates unpredictable 16-bit ids of queries. */
export const QueryIds = Context.Reference<() => number>("@millrace/upstreams/dns/NameServers/QueryIds", {
  defaultValue: () => () => randomInt(0x1_0000)
})

const RCODES: Readonly<Record<number, string>> = { 1: "FORMERR", 2: "SERVFAIL", 4: "NOTIMP", 5: "REFUSED", 16: "BADVERS" }

/** Queries one server after another, each several times. If none answers, `UpstreamUnavailable` names the reason of each. */
export const make = ({ servers, timeout, attempts, concurrency }: Options) =>
  Effect.gen(function* () {
    const nextId = yield* QueryIds
    const sockets = yield* Semaphore.make(concurrency)
    const turns = Array.from({ length: attempts }, () => servers).flat()

    const exchange = Effect.fnUntraced(function* (server: ServerAddress, question: Message.Question) {
      const query = Message.query(question)
      const read = (bytes: Buffer) => Message.read(bytes, question)
      const datagram = yield* Transport.overUdp(server, query, read)
      const reply = datagram.truncated ? yield* Transport.overTcp(server, query, read) : datagram
      if (reply.truncated) return yield* Transport.unavailable("its answer is cut off over TCP, too")
      if (reply.rcode !== Message.NOERROR && reply.rcode !== Message.NXDOMAIN)
        return yield* Transport.unavailable(RCODES[reply.rcode] ?? `response code ${reply.rcode}`)
      const resolution = Resolution.make(question, reply)
      if (resolution === undefined) return yield* Transport.unavailable("it only refers to other servers")
      return { resolution, bytes: reply.bytes, at: yield* Clock.currentTimeMillis }
    })

    const askOne = (server: ServerAddress, name: string, type: Message.RecordType) =>
      Effect.suspend(() => exchange(server, { id: nextId(), name, type })).pipe(
        Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(Transport.unavailable("no answer in time")) }),
        sockets.withPermit
      )

    return Effect.fnUntraced(function* (name: string, type: Message.RecordType): Effect.fn.Return<Answered, UpstreamUnavailable> {
      const reasons: Array<string> = []
      for (const server of turns) {
        const result = yield* Effect.result(askOne(server, name, type))
        if (Result.isSuccess(result)) return result.success
        reasons.push(`${server.text}: ${result.failure.reason}`)
      }
      return yield* Transport.unavailable(reasons.join("; "))
    })
  })
