/** Handlers of notices share one subscription to the log, whatever the order in which they come and go. */
import { MasterKey, Millrace, Registration } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Exit, Layer, ManagedRuntime, Scope, Stream } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { Jobs } from "../../../core/src/jobs/Jobs.ts"
import { listeningOf, type Notice } from "../../src/host/Notices.ts"
import { runnerOf } from "../../src/host/Run.ts"

/** Counts the subscriptions that are open. */
const counting = (open: { subscriptions: number }) =>
  Layer.effect(
    EventStore.EventStore,
    Effect.map(MemoryEventStore.make, (store) => ({
      ...store,
      subscribe: (after: EventStore.Position) =>
        Stream.unwrap(
          Effect.as(
            Effect.acquireRelease(
              Effect.sync(() => void open.subscriptions++),
              () => Effect.sync(() => void open.subscriptions--)
            ),
            store.subscribe(after)
          )
        )
    }))
  )

/** A host in memory, and how many subscriptions its listening has. */
const hostOf = async () => {
  const open = { subscriptions: 0 }
  const domain = Jobs.layer().pipe(Layer.provideMerge(Millrace.administration()))
  const runtime = ManagedRuntime.make(
    domain.pipe(Layer.provideMerge(Layer.mergeAll(counting(open), MemoryStateStore.layer, MasterKey.layer("1".repeat(64)))))
  )
  const scope = Scope.makeUnsafe()
  const run = runnerOf(runtime)
  await run(Effect.void)
  await expect.poll(() => open.subscriptions).toBeGreaterThan(0)
  // Those of the projections
  const before = open.subscriptions
  return {
    listening: listeningOf(run, scope),
    extra: () => open.subscriptions - before,
    open: (reference: string) => run(Registration.use((registration) => registration.open({ reference }))),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void)).then(() => runtime.dispose())
  }
}

it("opens one subscription for any number of handlers, and closes it with the last", async () => {
  const host = await hostOf()
  try {
    const step = fc.oneof(fc.constant("join" as const), fc.nat(3))
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const offs: Array<() => Promise<void>> = []
        for (const step of steps) {
          if (step === "join") offs.push(await host.listening.on("account.opened", () => {}))
          else await offs.splice(step, 1)[0]?.()
          await expect.poll(() => host.extra(), { interval: 1 }).toBe(offs.length > 0 ? 1 : 0)
        }
        for (const off of offs) await off()
        expect(host.extra()).toBe(0)
      }),
      { numRuns: 20 }
    )
  } finally {
    await host.close()
  }
})

it("tells each handler what happens after it came, with the host's own id of the account", async () => {
  const host = await hostOf()
  try {
    const heard: Array<ReadonlyArray<Notice<"account.opened">>> = []
    const join = async (): Promise<() => Promise<void>> => {
      const notices: Array<Notice<"account.opened">> = []
      heard.push(notices)
      return host.listening.on("account.opened", (notice) => void notices.push(notice))
    }
    await host.open("user-0")
    const off = await join()
    await host.open("user-1")
    await join()
    await expect.poll(() => heard[0]?.length).toBe(1)
    await off()
    await host.open("user-2")
    await expect.poll(() => heard[1]?.length).toBe(1)
    const references = heard.map((notices) => notices.map(({ reference }) => reference))
    expect(references).toEqual([["user-1"], ["user-2"]])
    expect(heard[0]?.[0]?.id).toMatch(/^account_opened_[0-9a-f-]{36}$/u)
  } finally {
    await host.close()
  }
})

it("holds up no other handler while one takes its time", async () => {
  const host = await hostOf()
  try {
    const heard: Array<string | undefined> = []
    await host.listening.on("account.opened", () => new Promise(() => {}))
    await host.listening.on("account.opened", ({ reference }) => void heard.push(reference))
    await host.open("user-1")
    await host.open("user-2")
    await expect.poll(() => heard).toEqual(["user-1", "user-2"])
  } finally {
    await host.close()
  }
})

it("goes on for the others when one that holds them up leaves", async () => {
  const host = await hostOf()
  try {
    let heard = 0
    const off = await host.listening.on("account.opened", () => new Promise(() => {}))
    await host.listening.on("account.opened", () => void heard++)
    // One more than wait for a handler, and the one that it has begun
    const all = 1_002
    await Promise.all(Array.from({ length: all }, (_, i) => host.open(`user-${i}`)))
    await expect.poll(() => heard, { timeout: 10_000 }).toBe(all - 1)
    await off()
    await expect.poll(() => heard, { timeout: 10_000 }).toBe(all)
  } finally {
    await host.close()
  }
})
