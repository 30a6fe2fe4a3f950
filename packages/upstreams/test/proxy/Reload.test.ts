/** A node whose upstreams change while it serves. */
import { ProxyNodes } from "@millrace/core"
import { Effect, Layer, Logger, Queue } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { ProxyServer, type UpstreamProxy } from "../../src/proxy/ProxyServer.ts"
import * as Node from "./Node.ts"
import { echoed, greeter, httpUpstream, inFrance, upstream } from "./OtherProxies.ts"
import { testing } from "./Testing.ts"

/** A source as a file is: it can be changed, and broken. `looked` gives the clock a look's time, and returns the level of what was logged. */
const source = Effect.gen(function* () {
  const levels = yield* Queue.unbounded<string>()
  let now: ReadonlyArray<UpstreamProxy> | string = []
  const read = Effect.suspend(() => (typeof now === "string" ? Effect.fail({ message: now }) : Effect.succeed(now)))
  return {
    read,
    put: (next: typeof now) => {
      now = next
    },
    looked: Effect.andThen(TestClock.adjust("10 seconds"), Queue.take(levels)),
    quiet: Layer.merge(Logger.layer([Logger.make(({ logLevel }) => void Queue.offerUnsafe(levels, logLevel))]), TestClock.layer())
  }
})

const places = Effect.map(
  ProxyNodes.use(({ list }) => list),
  (nodes) => nodes.map(({ country, members = 0 }) => `${country} ${members}`).sort()
)

/** The places as they are announced at the next renewal. */
const renewed = Effect.andThen(TestClock.adjust("10 seconds"), places)

const trouble = Effect.map(ProxyServer, ({ trouble }) => trouble())

describe("a node whose upstreams change", () => {
  testing(
    "goes on with those it is given, announces new places and withdraws others, and keeps tunnels that are open",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const { looked, put, quiet, read } = yield* source
      const [first, second, third] = [yield* httpUpstream(), yield* httpUpstream(), yield* httpUpstream()]
      const at = (port: number, country: string, exit?: string) =>
        upstream(`http://127.0.0.1:${port}`, { country, ...(exit === undefined ? {} : { exit }) })
      put([at(first.port, "FR", "203.0.113.1"), at(second.port, "FR", "203.0.113.2")])
      yield* Effect.gen(function* () {
        const http = yield* Node.portOf("http")
        const connect = (session: Parameters<typeof Node.byConnect>[1]) => Node.byConnect(http, session, `127.0.0.1:${port}`)
        const sticky = yield* inFrance("sticky", "203.0.113.2")
        const kept = yield* connect(sticky)
        expect([first.asked.length, second.asked.length]).toEqual([0, 1])
        expect(yield* places).toEqual(["FR 2"])

        // Another member before it: the session keeps its exit
        put([at(third.port, "FR", "203.0.113.3"), at(second.port, "FR", "203.0.113.2"), at(first.port, "IT")])
        expect(yield* looked).toBe("Info")
        expect(yield* renewed).toEqual(["FR 2", "IT 1"])
        expect(yield* echoed(yield* connect(sticky))).toBe("hello")
        expect([first.asked.length, second.asked.length, third.asked.length]).toEqual([0, 2, 0])
        const italian = yield* Node.open("rotating", undefined, "IT")
        expect(yield* echoed(yield* connect(italian))).toBe("hello")

        // Its member is gone: the tunnel stays, and the next leaves from another
        put([at(third.port, "FR", "203.0.113.3")])
        expect(yield* looked).toBe("Info")
        expect(yield* renewed).toEqual(["FR 1"])
        expect(yield* echoed(kept)).toBe("hello")
        expect(yield* echoed(yield* connect(sticky))).toBe("hello")
        expect([second.asked.length, third.asked.length]).toEqual([2, 1])
        expect(yield* connect(italian)).toBe(503)
        expect(yield* trouble).toBeUndefined()
      }).pipe(
        Effect.provide(Node.serve({ allowed: [port], country: undefined, upstreams: { read } }).pipe(Layer.provideMerge(Node.log()))),
        Effect.provide(quiet)
      )
    })
  )

  testing(
    "keeps those it has while its source is broken or does not fit, and says so",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const { looked, put, quiet, read } = yield* source
      const { asked, port: at } = yield* httpUpstream()
      const good = [upstream(`http://127.0.0.1:${at}`)]
      put(good)
      yield* Effect.gen(function* () {
        const [http, session] = [yield* Node.portOf("http"), yield* inFrance()]
        const own = upstream("http://127.0.0.1:1", { country: "DE" })
        for (const [next, why] of [
          ["line 2 is no upstream", "line 2 is no upstream"],
          [[own], "of the node's own place"]
        ] as const) {
          put(next)
          expect(yield* looked).toBe("Warn")
          expect(yield* trouble).toContain(why)
          expect(yield* places).toEqual(["DE 0", "FR 1"])
          expect(yield* echoed(yield* Node.byConnect(http, session, `127.0.0.1:${port}`))).toBe("hello")
        }
        expect(asked).toHaveLength(2)
        put([...good, ...good])
        expect(yield* looked).toBe("Info")
        expect(yield* trouble).toBeUndefined()
        expect(yield* renewed).toEqual(["DE 0", "FR 2"])
      }).pipe(
        Effect.provide(Node.serve({ allowed: [port], upstreams: { read } }).pipe(Layer.provideMerge(Node.log()))),
        Effect.provide(quiet)
      )
    })
  )
})
