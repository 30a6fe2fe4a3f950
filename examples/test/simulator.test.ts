/** A host's own property test: its operation, under hundreds of faults, crashes and impatient callers that one seed decides. */
import { Operation } from "@millrace/core"
import { Simulator } from "@millrace/testing"
import { Effect, Layer, Schema } from "effect"
import { expect, test } from "vitest"

/** Thumbnails by the piece; of a batch, only those that could be read are charged. */
const thumbnails = Operation.make("images.thumbnails", {
  summary: "Make thumbnails of some images",
  route: {
    method: "POST",
    path: "/thumbnails",
    body: { images: Schema.Array(Schema.String).check(Schema.isMinLength(1), Schema.isMaxLength(20)) }
  },
  success: Schema.Struct({ made: Schema.Int, unreadable: Schema.Array(Schema.String) }),
  quantity: ({ images }) => images.length,
  run: ({ images }) => {
    const unreadable = images.filter((image) => image.startsWith("broken"))
    const made = images.length - unreadable.length
    return Effect.succeed({ data: { made, unreadable }, quantity: made })
  }
})

const workload: Simulator.Workload<typeof thumbnails> = {
  offers: [
    {
      operation: thumbnails,
      input: (random) => ({
        images: Array.from({ length: 1 + random.below(20) }, (_, i) => (random.below(5) === 0 ? `broken-${i}` : `image-${i}`))
      }),
      price: 250
    }
  ],
  services: Layer.empty,
  expect: {
    // An unreadable image costs nothing, whatever the price is at that moment
    after: (_operation, _input, reply, { call, charge }) =>
      reply._tag === "Failure" || (charge(call.requestId)?.quantity ?? 0) <= reply.data.made
  }
}

test("no account pays for a thumbnail that was not made, whatever fails", async () => {
  const { stats } = await Effect.runPromise(Simulator.check({ workload, runs: 8 }))
  expect(stats["OperationSucceeded"]).toBeGreaterThan(20)
  expect(stats["told replayed"]).toBeGreaterThan(20)
}, 60_000)
