/**
 * Ten thousand connections of callers who mean no good, or have a bad line: slow, half-sent, pipelined, oversized, and gone at each phase
 * of a call. What is left after them is nothing: no hold, no socket, no memory, and not a credit too much or too little.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Exit, Layer, ManagedRuntime, Scope } from "effect"
import { TestClock } from "effect/testing"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { eventually, host } from "./Host.ts"

const ROUNDS = 4
const CONNECTIONS = 2_000
const AT_ONCE = 128
/** Milliseconds after which the server gives up on a request that does not come. */
const PATIENCE = 150
/** Bytes of heap that may be there more, after thousands of connections more: far less than a hundred for each. */
const SLACK = 600_000

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** The same in each run: https://en.wikipedia.org/wiki/Linear_congruential_generator. */
const dice = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const tick = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

type Abuse = (socket: Socket, roll: (below: number) => number) => Promise<void>

const abuses = (authorization: string): ReadonlyArray<Abuse> => {
  const head = (method: string, path: string, ...headers: ReadonlyArray<string>) =>
    [`${method} ${path} HTTP/1.1`, "Host: millrace", `Authorization: ${authorization}`, ...headers, "", ""].join("\r\n")
  const work = (how: string) => {
    const body = JSON.stringify({ how })
    return `${head("POST", "/api/v1/test/room/work", `Content-Length: ${body.length}`)}${body}`
  }
  const leave = async (socket: Socket, roll: (below: number) => number, within: number) => {
    await tick(roll(within))
    socket.destroy()
  }
  return [
    // Gone before the headers end
    async (socket, roll) => {
      const text = work("at once")
      socket.write(text.slice(0, 1 + roll(80)))
      await leave(socket, roll, 4)
    },
    // Gone in the middle of the body
    async (socket, roll) => {
      socket.write(`${head("POST", "/api/v1/test/room/work", "Content-Length: 500")}{"how":`)
      await leave(socket, roll, 4)
    },
    // Never sends the rest, and is told so
    async (socket) => {
      socket.write(`${head("POST", "/api/v1/test/room/work", "Content-Length: 500")}{"how":`)
      await ended(socket)
    },
    // A byte at a time, for as long as one lets him
    async (socket) => {
      for (const byte of `${head("POST", "/api/v1/test/room/work", "Content-Length: 500")}{`) {
        if (!socket.writable) return
        socket.write(byte)
        await tick(3)
      }
      await ended(socket)
    },
    // Gone while credits are taken, or while the work is on
    async (socket, roll) => {
      socket.write(work("when told"))
      await leave(socket, roll, 6)
    },
    // Gone while it is settled, or answered
    async (socket, roll) => {
      socket.write(work("at once"))
      await leave(socket, roll, 3)
    },
    // Several at once, and gone before they are all answered
    async (socket, roll) => {
      socket.write(work("at once").repeat(4))
      await leave(socket, roll, 5)
    },
    async (socket) => {
      socket.write(head("GET", "/api/v1/bin/457173", `X-Long: ${"x".repeat(17_000)}`))
      await ended(socket)
    },
    // Asks for much, and reads nothing
    async (socket, roll) => {
      socket.pause()
      socket.write(head("GET", "/docs").repeat(2))
      await leave(socket, roll, 5)
    },
    // As it should be
    async (socket) => {
      socket.write(work("at once").replace("Host", "Connection: close\r\nHost"))
      await ended(socket)
    }
  ]
}

const ended = (socket: Socket) =>
  new Promise<void>((resolve) => {
    if (socket.destroyed) resolve()
    socket.resume().once("close", () => resolve())
  })

/** Sockets that were open at once. */
let busiest = 0

const abuse = async (port: number, act: Abuse, roll: (below: number) => number): Promise<void> => {
  const socket = connect({ port, host: "127.0.0.1" })
  // A server that hangs up is what some of them want
  socket.on("error", () => {})
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()).once("close", () => resolve()))
  busiest = Math.max(busiest, sockets())
  await act(socket, roll)
  socket.destroy()
}

const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length

describe("ten thousand bad connections", () => {
  const runtime = ManagedRuntime.make(TestClock.layer())
  const folder = mkdtempSync(join(tmpdir(), "millrace-abuse-"))
  const scope = Scope.makeUnsafe()
  const opened = Effect.gen(function* () {
    // It looks for events of other processes every 20 ms, which a jump of hours would make 100,000 times: it looks in real time instead
    const events = SqliteEventStore.layer({ filename: join(folder, "log.db") }).pipe(
      Layer.provide(Layer.succeed(Clock.Clock, Clock.Clock.defaultValue())),
      Layer.orDie
    )
    const hosts = yield* host({
      rateLimit: { limit: 1_000_000, window: 60 },
      events,
      server: { headersTimeout: PATIENCE, requestTimeout: PATIENCE }
    })
    return { hosts, ...(yield* hosts.account(100_000)), quiet: sockets() }
  })
  const roll = dice(1)
  const heaps: Array<number> = []
  let world: Effect.Success<typeof opened>

  beforeAll(async () => {
    world = await runtime.runPromise(Scope.provide(opened, scope))
  })
  afterAll(async () => {
    await runtime.runPromise(Scope.close(scope, Exit.void))
    await runtime.dispose()
    rmSync(folder, { recursive: true, force: true })
  })

  /** A test with a bound of its own, so that it holds beside other work. */
  const step = (name: string, body: () => Effect.Effect<unknown, unknown>) =>
    test(name, { timeout: 120_000 }, () => runtime.runPromise(Effect.asVoid(body())))

  for (let round = 1; round <= ROUNDS; round++)
    step(`leave no sockets and no requests behind: round ${round} of ${ROUNDS}`, () =>
      Effect.gen(function* () {
        const { hosts, accountId, bearer, quiet } = world
        const acts = abuses(bearer.authorization)
        yield* Effect.promise(async () => {
          let left = CONNECTIONS
          const worker = async () => {
            while (left-- > 0) {
              const act = acts[roll(acts.length)]
              if (act !== undefined) await abuse(hosts.port, act, roll)
            }
          }
          await Promise.all(Array.from({ length: AT_ONCE }, worker))
        })
        yield* eventually(hosts.balance(accountId), ({ held }) => held === 0)
        yield* eventually(Effect.sync(sockets), (open) => open <= quiet)
        // What an account remembers of calls for retries, it forgets in an hour
        yield* TestClock.adjust("2 hours")
        expect((yield* hosts.call("/api/v1/bin/457173", { headers: bearer })).status).toBe(200)
        hosts.lines.length = 0
        hosts.bench.started.length = 0
        hosts.bench.interrupted.length = 0
        yield* Effect.promise(() => tick(20))
        collect()
        heaps.push(process.memoryUsage().heapUsed)
      })
    )

  test("were many at once, and leave no memory behind", () => {
    expect(busiest).toBeGreaterThan(AT_ONCE)
    expect(heaps).toHaveLength(ROUNDS)
    // The first round warms up
    const [, early = 0, ...later] = heaps
    expect(Math.min(...later) - early, `heaps: ${heaps.join(", ")}`).toBeLessThan(SLACK)
  })

  step("are charged or refunded, each once, to the credit", () =>
    Effect.gen(function* () {
      const { hosts, accountId } = world
      const ends = new Map<string, Array<string>>()
      let charged = 0
      for (const { type, data } of yield* hosts.log) {
        const event = JSON.parse(data)
        if (type === "CreditReserved") ends.set(event.reservationId, [])
        if (type !== "OperationSucceeded" && type !== "Refunded") continue
        ends.get(event.reservationId)?.push(type)
        if (type === "OperationSucceeded") charged += event.charged
      }
      expect(ends.size).toBeGreaterThan(ROUNDS * CONNECTIONS * 0.3)
      expect([...ends.values()].filter((types) => types.length !== 1)).toEqual([])
      const outcomes = [...ends.values()].flat()
      expect(new Set(outcomes)).toEqual(new Set(["OperationSucceeded", "Refunded"]))
      expect((yield* hosts.balance(accountId)).available).toBe(100_000_000 - charged)
    })
  )
})
