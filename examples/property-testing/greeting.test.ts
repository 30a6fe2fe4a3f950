import { Simulator } from "@millrace/testing"
import { Effect, Layer } from "effect"
import { operation } from "millrace"
import { test } from "vitest"
import { z } from "zod"

const greet = operation("greeting.write", {
  summary: "Write a greeting",
  price: 1.5,
  route: { method: "GET", path: "/greeting/:name", params: z.object({ name: z.string() }) },
  success: z.object({ greeting: z.string() }),
  run: async ({ name }) => ({ greeting: `Hello, ${name}!` })
})

const workload: Simulator.Workload<typeof greet.core> = {
  offers: [{ operation: greet.core, input: (random) => ({ name: random.pick(["Ada", "Charles"]) }), price: 1_500 }],
  services: Layer.empty,
  expect: {
    after: (_operation, { name }, reply) => reply._tag === "Failure" || reply.data.greeting === `Hello, ${name}!`
  }
}

test("greetings are billed correctly, whatever fails", async () => {
  await Effect.runPromise(Simulator.check({ workload, runs: 3 }))
}, 60_000)
