/** Work of a workload that waits for the real world is named; promises that need no time are part of the simulation. */
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Operation } from "@millrace/core"
import { Effect, Layer, Schema } from "effect"
import { describe, expect, test } from "vitest"
import * as Simulator from "../src/Simulator.ts"

const operationOf = (work: () => Effect.Effect<number>) =>
  Operation.make("things.make", {
    summary: "Makes a thing",
    route: { method: "POST", path: "/things", body: {} },
    success: Schema.Struct({ n: Schema.Int }),
    run: () => Effect.map(Effect.suspend(work), (n) => ({ data: { n } }))
  })

const workloadOf = (work: () => Effect.Effect<number>, services: Layer.Layer<never> = Layer.empty) => ({
  offers: [{ operation: operationOf(work), input: () => ({}), price: 100 }] as const,
  services
})

const FEW = { seed: 5, steps: 8, hosts: 2, faults: Simulator.none }

/** The first violation of a run without faults. */
const failureOf = async (work: () => Effect.Effect<number>) =>
  (await Effect.runPromise(Effect.flip(Simulator.check({ ...FEW, runs: 0, shrink: false, workload: workloadOf(work) })))).violations

const WOKEN =
  /^operation things\.make, request q\d+, at h\d\.0 was woken from outside the simulation, by (?<what>.*): simulated time passes/u

describe("an operation that waits for the real world is named, with its host and what to do", () => {
  test("a timer", async () => {
    const work = () => Effect.promise(() => new Promise<number>((resolve) => setTimeout(() => resolve(1), 15)))
    expect(WOKEN.exec((await failureOf(work))[0] ?? "")?.groups?.["what"]).toBe("a timer")
  })

  test("a file", async () => {
    const work = () => Effect.promise(async () => (await readFile(new URL(import.meta.url))).length)
    expect(WOKEN.exec((await failureOf(work))[0] ?? "")?.groups?.["what"]).toMatch(/a file|a promise or a callback/u)
  })

  test("a thread of its own", async () => {
    const work = () => Effect.promise(async () => (await crypto.subtle.digest("SHA-256", new Uint8Array(64))).byteLength)
    expect((await failureOf(work))[0]).toMatch(WOKEN)
  })

  test("a server", async () => {
    const server = createServer((_, response) => response.end("1"))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    try {
      const { port } = server.address() as AddressInfo
      const work = () => Effect.promise(async () => Number(await (await fetch(`http://127.0.0.1:${port}/`)).text()))
      expect((await failureOf(work))[0]).toMatch(WOKEN)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test("a promise that never settles", async () => {
    const [violation] = await failureOf(() => Effect.promise(() => new Promise<number>(() => {})))
    expect(violation).toMatch(
      /^operation things\.make, request q\d+, at h\d\.0 waited \d+ ms for something that no fiber of the simulation ended/u
    )
  })

  test("a promise that never settles, and cannot be interrupted", async () => {
    const violations = await failureOf(() => Effect.uninterruptible(Effect.promise(() => new Promise<number>(() => {}))))
    expect(violations[0]).toMatch(/^a caller was never answered; operation things\.make, request q\d+, at h\d\.0 has waited for \d+ ms/u)
  })

  test("a layer of the workload that waits for a timer before any host is up", async () => {
    const slow = Layer.effectDiscard(Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 15))))
    const run = Simulator.run({ ...FEW, workload: workloadOf(() => Effect.succeed(1), slow) })
    expect((await Effect.runPromise(Effect.flip(run))).violations[0]).toMatch(
      /^the layer `services` of the workload at founder\.0 was woken/u
    )
  })
})

describe("what needs no real time is part of the simulation", () => {
  test("promises that settle by themselves take no simulated time, and repeat with the seed", async () => {
    const hop = async (hops: number): Promise<number> => (hops === 0 ? 1 : (await hop(hops - 1)) + (await Promise.resolve(0)))
    const workload = workloadOf(() => Effect.promise(() => hop(40)))
    for (let seed = 1; seed <= 2; seed++) {
      const [one, other] = [
        await Effect.runPromise(Simulator.run({ seed, workload })),
        await Effect.runPromise(Simulator.run({ seed, workload }))
      ]
      expect(other.hash).toBe(one.hash)
      expect(one.stats["told done"]).toBeGreaterThan(0)
    }
  })

  test("a host that has crashed goes on with nothing, whatever its promises do", async () => {
    const workload = workloadOf(() =>
      Effect.delay(
        Effect.promise(async () => 1),
        50
      )
    )
    for (let seed = 1; seed <= 2; seed++) await Effect.runPromise(Simulator.run({ seed, faults: { hosts: 0.5 }, workload }))
  })

  test("an operation that sleeps beyond its time limit", async () => {
    const workload = workloadOf(() => Effect.as(Effect.sleep("1 hour"), 1))
    const { calls } = await Effect.runPromise(Simulator.run({ ...FEW, keys: 0, workload }))
    expect(calls.map(({ answer }) => answer)).toContain("UpstreamUnavailable")
  })
})
