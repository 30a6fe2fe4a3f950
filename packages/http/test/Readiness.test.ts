/** What keeps a host from being ready, and what it only warns of. */
import { SmsReceiver } from "@millrace/core"
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Layer, Logger } from "effect"
import { expect } from "vitest"
import { Http, Readiness, WebHandler } from "../src/index.ts"
import { api, eventually, host, PUBLIC_NUMBER, services, testing } from "./Host.ts"

testing(
  "a host whose list of text messages has stopped is not ready: its waits do not see what arrives",
  Effect.gen(function* () {
    const { call, run } = yield* host()
    const ready = yield* eventually(call("/ready"), ({ status }) => status === 200)
    expect(ready.json).toMatchObject({ status: "ready", reasons: [], warnings: [] })
    yield* run(
      Effect.gen(function* () {
        yield* SmsReceiver.use(({ receive }) => receive({ source: "host", id: "1", from: "Example", to: PUBLIC_NUMBER, text: "482913" }))
        const events = yield* EventStore.EventStore
        const stream = StreamName.make("sms", "unreadable")
        yield* events.append(stream, -1, [{ id: crypto.randomUUID(), type: "SmsReceived", data: '{"number":5}', metadata: "{}" }])
      })
    )
    const { json } = yield* eventually(call("/ready"), ({ status }) => status === 503)
    expect(json).toMatchObject({ status: "not_ready", reasons: ["the list of text messages stopped at an event that it cannot fold"] })
  })
)

testing(
  "a host is ready with warnings, and says them for as long as they hold",
  Effect.gen(function* () {
    let warning: string | undefined = "the SMSC is not connected"
    const readiness = Readiness.Readiness.layer([], [Effect.sync(() => warning), Effect.succeed("its certificate ends tomorrow")])
    const context = yield* Layer.build(Layer.fresh(Layer.provideMerge(readiness, services()).pipe(Layer.provideMerge(Logger.layer([])))))
    const { handle } = yield* Effect.provideContext(WebHandler.make(Http.layer(api)), context)
    const ready = Effect.promise(async () => {
      const response = await handle(new Request("http://localhost/ready"))
      return { status: response.status, body: (await response.json()) as Readiness.Ready }
    })
    const { body } = yield* eventually(ready, ({ status }) => status === 200)
    expect(body).toMatchObject({ status: "ready", reasons: [], warnings: ["the SMSC is not connected", "its certificate ends tomorrow"] })
    warning = undefined
    expect((yield* ready).body.warnings).toEqual(["its certificate ends tomorrow"])
  })
)
