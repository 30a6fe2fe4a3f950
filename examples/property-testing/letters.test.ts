import { Simulator } from "@millrace/testing"
import { Effect } from "effect"
import { test } from "vitest"
import { workload } from "./letters.ts"

test("no account pays for a letter that was not sent, whatever fails", async () => {
  await Effect.runPromise(Simulator.check({ workload, runs: 6 }))
}, 60_000)
