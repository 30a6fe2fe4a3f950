/** Links over real sockets, behind a proxy that breaks them at any point. */
import { randomBytes } from "node:crypto"
import { connect } from "node:net"
import { type ConnectionOptions, connect as connectTls } from "node:tls"
import { Effect, Redacted } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as FaultProxy from "../../../testing/src/FaultProxy.ts"
import { Link, type Outcome } from "../../src/leading/Link.ts"
import { type Forwarded, VERSION } from "../../src/leading/Message.ts"
import { Reception, type Run } from "../../src/leading/Reception.ts"
import { secretOf } from "../../src/leading/Tls.ts"

const LOOPBACK = { host: "127.0.0.1", port: 0 }
const secret = secretOf(Redacted.make(randomBytes(32)))
const PATIENCE = 20_000

const eventually = async (isIt: () => boolean) => {
  while (!isIt()) await new Promise((resolve) => setTimeout(resolve, 5))
}

const callOf = (input: unknown): Forwarded => ({
  operation: "test.echo",
  input,
  caller: { accountId: "acc_1", requestId: "req_1" },
  trace: {}
})

const answerOf = (input: unknown) => ({ reply: { requestId: "req_1", data: JSON.stringify(input), replayed: false } })

interface Setting {
  readonly link: Link
  readonly reception: Reception
  readonly proxy: FaultProxy.FaultProxy
  /** Sends a call and waits until it is told; a second telling fails the test. */
  readonly call: (input: unknown) => Promise<Outcome>
}

/** A link through a proxy to a host that runs calls by `run`. */
const withLink = (run: Run, use: (setting: Setting) => Promise<void>): Promise<void> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const reception = new Reception(secret, run)
        const { port } = yield* Effect.promise(() => reception.listen(LOOPBACK))
        const proxy = yield* FaultProxy.make(port)
        const link = new Link({ ...LOOPBACK, port: proxy.port }, secret, () => {})
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            link.close()
            reception.close()
          })
        )
        yield* Effect.promise(() => eventually(() => link.state === "open"))
        const call = (input: unknown) => {
          let isTold = false
          return new Promise<Outcome>((resolve, reject) => {
            const cancel = link.call(callOf(input), PATIENCE, (outcome) => {
              if (isTold) reject(new Error("It was told twice"))
              isTold = true
              resolve(outcome)
            })
            if (cancel === undefined) resolve({ _tag: "NotBegun" })
          })
        }
        yield* Effect.promise(() => use({ link, reception, proxy, call }))
      })
    )
  )

describe("a link", () => {
  test("brings each call its own answer, many at once and large ones", async () => {
    const run: Run = ({ input }, told) => {
      const timer = setTimeout(() => told(answerOf(input)), Math.random() * 5)
      return () => clearTimeout(timer)
    }
    await withLink(run, async ({ call }) => {
      const inputs = Array.from({ length: 500 }, (_, n) => (n % 100 === 0 ? "x".repeat(3_000_000) : n))
      const outcomes = await Promise.all(inputs.map(call))
      outcomes.forEach((outcome, n) => {
        expect(outcome).toEqual({ _tag: "Ended", ended: answerOf(inputs[n]) })
      })
    })
  })

  test("tells of each call whether it ran, wherever the connection breaks", { timeout: 120_000 }, async () => {
    const fault = fc.record({
      direction: fc.constantFrom("up" as const, "down" as const),
      after: fc.integer({ min: 0, max: 4_000 }),
      kind: fc.constantFrom("cut" as const, "reset" as const, "halfOpen" as const)
    })
    const property = fc.asyncProperty(fault, fc.integer({ min: 1, max: 20 }), async ({ after, direction, kind }, count) => {
      const runs = new Map<unknown, number>()
      const run: Run = ({ input }, told) => {
        runs.set(input, (runs.get(input) ?? 0) + 1)
        const timer = setTimeout(() => told(answerOf(input)), 2)
        return () => {
          clearTimeout(timer)
          told({ interrupted: true })
        }
      }
      await withLink(run, async ({ call, link, proxy }) => {
        proxy.set({ [direction]: kind === "cut" ? { _tag: kind, after } : { _tag: kind } }, 1)
        const outcomes = await Promise.all(Array.from({ length: count }, (_, n) => call(n)))
        outcomes.forEach(({ _tag }, n) => {
          const ran = runs.get(n) ?? 0
          expect(ran).toBeLessThanOrEqual(1)
          if (_tag === "Ended") expect(ran).toBe(1)
          if (_tag === "NotBegun") expect(ran).toBe(0)
        })
        // It opens again by itself
        proxy.set()
        await eventually(() => link.state === "open")
        expect(await call("again")).toEqual({ _tag: "Ended", ended: answerOf("again") })
      })
    })
    await fc.assert(property, { numRuns: 25 })
  })

  test("that falls silent is broken, and its calls are lost and interrupted", { timeout: 20_000 }, async () => {
    let interrupted = 0
    await withLink(
      () => () => interrupted++,
      async ({ call, link, proxy }) => {
        const waiting = call(1)
        await new Promise((resolve) => setTimeout(resolve, 50))
        proxy.set({ up: { _tag: "blackHole" }, down: { _tag: "blackHole" } })
        expect(await waiting).toEqual({ _tag: "Lost" })
        expect(link.state).toBe("opening")
        await eventually(() => interrupted === 1)
      }
    )
  })

  test("brings a cancelled call to its host, and nothing is told", async () => {
    let interrupted = 0
    await withLink(
      (_, told) => () => {
        interrupted++
        told({ interrupted: true })
      },
      async ({ link, reception }) => {
        const cancel = link.call(callOf(1), PATIENCE, () => expect.unreachable())
        await eventually(() => reception.running === 1)
        cancel?.()
        await eventually(() => reception.running === 0)
        expect(interrupted).toBe(1)
      }
    )
  })

  test("does not take calls of a host that leaves, and brings those under way to their end", async () => {
    const ends: Array<() => void> = []
    const run: Run = ({ input }, told) => {
      ends.push(() => told(answerOf(input)))
      return () => {}
    }
    await withLink(run, async ({ call, link, reception }) => {
      const waiting = call(1)
      await eventually(() => reception.running === 1)
      const idle = reception.leave()
      // It was sent before the other host is known to leave
      expect(await call(2)).toEqual({ _tag: "NotBegun" })
      await eventually(() => link.state === "leaving")
      expect(await call(3)).toEqual({ _tag: "NotBegun" })
      for (const end of ends) end()
      await idle
      expect(await waiting).toEqual({ _tag: "Ended", ended: answerOf(1) })
    })
  })

  test("gives up a call that is never answered", { timeout: 10_000 }, async () => {
    await withLink(
      () => () => {},
      async ({ link }) => {
        const outcome = await new Promise<Outcome>((resolve) => link.call(callOf(1), 100, resolve))
        expect(outcome).toEqual({ _tag: "Lost" })
      }
    )
  })

  test("refuses what is too long to send", async () => {
    await withLink(
      () => undefined,
      async ({ call }) => {
        expect(await call("x".repeat(9 * 1024 * 1024))).toEqual({ _tag: "NotBegun" })
      }
    )
  })
})

describe("a host", () => {
  test("takes no calls from one that has another secret", async () => {
    let runs = 0
    const reception = new Reception(secret, () => {
      runs++
      return undefined
    })
    const { port } = await reception.listen(LOOPBACK)
    let changes = 0
    const link = new Link({ ...LOOPBACK, port }, secretOf(Redacted.make(randomBytes(32))), () => changes++)
    await new Promise((resolve) => setTimeout(resolve, 600))
    expect([link.state, changes, runs]).toEqual(["opening", 0, 0])
    link.close()
    reception.close()
  })

  test("takes no calls from one of another version, which has the secret", async () => {
    const reception = new Reception(secret, () => expect.unreachable())
    const { port } = await reception.listen(LOOPBACK)
    const options: ConnectionOptions = {
      ...LOOPBACK,
      port,
      ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
      maxVersion: "TLSv1.2",
      pskCallback: () => ({ psk: Redacted.value(secret), identity: `millrace/${VERSION + 1}` }),
      checkServerIdentity: () => undefined
    }
    const refusal = await new Promise((resolve) => connectTls(options, () => resolve("open")).once("error", resolve))
    expect(String(refusal)).toContain("unknown psk identity")
    reception.close()
  })

  test("hangs up on one that does not speak TLS", async () => {
    const reception = new Reception(secret, () => undefined)
    const { port } = await reception.listen(LOOPBACK)
    const closed = new Promise((resolve) => {
      const socket = connect(port, LOOPBACK.host, () => socket.write('GET / HTTP/1.1\r\n\r\n["call",1]'))
      socket.on("error", () => {}).once("close", resolve)
    })
    await closed
    reception.close()
  })
})
