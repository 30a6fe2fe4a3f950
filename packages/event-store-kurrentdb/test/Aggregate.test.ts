/** An aggregate on this store: each append of a short script meets each fault. Every acknowledged payment is in the log exactly once. */
import { Aggregate, EventStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { pay, till } from "../../event-sourcing/test/Till.ts"
import { fact, failsafe, patiently, type Store } from "./Store.ts"
import type { AppendFault } from "./standin/index.ts"

const FAULTS: ReadonlyArray<AppendFault> = ["lost", "unanswered", "dropBefore", "dropAfter", "late", { code: 14, details: "going down" }]
const PAYMENTS = 5

const over = (store: Store) => Effect.provideService(Aggregate.make(till), EventStore.EventStore, store)

describe("an aggregate", () => {
  for (const fault of FAULTS)
    fact(
      `writes each payment exactly once when an append fails (${typeof fault === "string" ? fault : fault.details})`,
      ({ node, store }) =>
        Effect.forEach(
          Array.from({ length: PAYMENTS }, (_, nth) => nth),
          (nth) =>
            Effect.gen(function* () {
              const id = `${nth}`
              let sent = 0
              node.faults.append = ({ stream }) => (stream === `till-${id}` && sent++ === nth ? fault : undefined)
              const aggregate = yield* over(store)
              for (let i = 0; i < PAYMENTS; i++) {
                const { state } = yield* failsafe(patiently(aggregate.execute(id, pay(`payment-${i}`, 1, 2))))
                expect(state.total).toBe((i + 1) * 2)
              }
              node.faults.release()
              expect(sent).toBeGreaterThan(PAYMENTS)
              // A second aggregate reads the whole stream and checks its hash chain
              const { state } = yield* Effect.flatMap(over(store), (other) => failsafe(patiently(other.read(id))))
              expect(state.keys).toEqual(Array.from({ length: PAYMENTS * 2 }, (_, i) => `payment-${Math.floor(i / 2)}`))
            }),
          { concurrency: 1 }
        ),
      { deadline: 400 }
    )
})
