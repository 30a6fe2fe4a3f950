/** Memory of 10,000 billed waits for verification codes at once, and the time until one message has ended all of them. Run with `--expose-gc`. */
import {
  Charge,
  Credits,
  Decisions,
  Ledger,
  MasterKey,
  Millrace,
  Registration,
  SmsReceiver,
  Vault,
  VerificationCodes
} from "@millrace/core"
import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Fiber, Layer } from "effect"

const WAITS = 10_000
const NUMBER = "+15005550006"

const services = Millrace.layer({ operations: [VerificationCodes.wait], rateLimit: { limit: 1_000_000, window: 60 } }).pipe(
  Layer.provideMerge(SmsReceiver.layer([NUMBER]).pipe(Layer.provide(Vault.Vault.layer))),
  Layer.provideMerge(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer("1f".repeat(32)))))
)

/** After collections that also give free pages back, so that what is resident is held by something. */
const memory = () => {
  for (let i = 0; i < 3; i++) globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" })
  const { heapUsed, rss } = process.memoryUsage()
  return { heapUsed, rss }
}

const inMb = (bytes: number) => Math.round(bytes / 1e6)

export const run = () =>
  Effect.gen(function* () {
    const { run } = yield* Charge.Charge
    const ledger = yield* Ledger
    const receiver = yield* SmsReceiver
    const accountId = yield* Registration.use((registration) => registration.open("a@example.org"))
    yield* ledger.execute(accountId, Decisions.grant({ lotId: "lot_1", amount: Credits.of(WAITS * 10_000), source: "promotion" }))
    const before = memory()
    const input = { source: "sms", identifier: "example", phone_number: NUMBER, timeout: 120 } as const
    const callers = Array.from({ length: WAITS }, (_, i) => ({ accountId, requestId: `req_${i}` }))
    const calls = yield* Effect.forEach(callers, (caller) => Effect.forkChild(run(VerificationCodes.wait, input, caller)))
    while ((yield* receiver.waiting) < WAITS) yield* Effect.sleep(50)
    const during = memory()
    const began = performance.now()
    yield* receiver.receive({ source: "host", id: "1", from: "Example", to: NUMBER, text: "482913 is your Example code" })
    const replies = yield* Effect.forEach(calls, (call) => Fiber.join(call))
    return [
      {
        waits: replies.filter(({ data }) => data.includes("482913")).length,
        "heap, MB": inMb(during.heapUsed - before.heapUsed),
        "resident, MB": inMb(during.rss - before.rss),
        "process, MB": inMb(during.rss),
        "all answered after, ms": Math.round(performance.now() - began)
      }
    ]
  }).pipe(Effect.scoped, Effect.provide(services), Effect.runPromise)
