/** Letters by post, charged by the letter. */
import { Operation, type UpstreamUnavailable } from "@millrace/core"
import type { Simulator } from "@millrace/testing"
import { Context, Effect, Layer, Schema } from "effect"

/** The service that the operation needs: it posts one letter to each address, and returns how many. */
class Post extends Context.Service<
  Post,
  { readonly send: (text: string, to: ReadonlyArray<string>) => Effect.Effect<number, UpstreamUnavailable> }
>()("Post") {}

export const send = Operation.make("letters.send", {
  summary: "Send a letter to some addresses",
  route: { method: "POST", path: "/letters", body: { text: Schema.String, to: Schema.Array(Schema.String) } },
  success: Schema.Struct({ sent: Schema.Int }),
  quantity: ({ to }) => to.length,
  run: ({ text, to }) =>
    Effect.gen(function* () {
      const post = yield* Post
      const sent = yield* post.send(text, to)
      return { data: { sent } }
    })
})

/** A fake: it takes simulated time, and posts one letter to an address that is given twice. */
const fakePost = Layer.succeed(Post, {
  send: (_text, to) => Effect.delay(Effect.succeed(new Set(to).size), "2 seconds")
})

export const workload: Simulator.Workload<typeof send> = {
  offers: [
    {
      operation: send,
      input: (random) => ({ text: "Hello", to: Array.from({ length: 1 + random.below(4) }, () => `Mill Road ${random.below(9)}`) }),
      price: 500
    }
  ],
  services: fakePost,
  expect: {
    after(_operation, _input, reply, { call, charge }) {
      const charged = charge(call.requestId)
      if (reply._tag === "Failure" || charged === undefined) return true
      return charged.quantity <= reply.data.sent || `${charged.quantity} letters were charged, but ${reply.data.sent} were sent`
    }
  },
  source: { from: "./letters.ts" }
}
