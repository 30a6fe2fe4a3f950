/** A local server of a payment gateway, whose requests fail as a test tells it. */
import type { ServerResponse } from "node:http"
import type { Fault } from "@millrace/testing"
import { Effect } from "effect"
import { json, type Received, serve } from "../shared/LocalService.ts"

/** What is answered. */
export interface Reply {
  readonly status: number
  readonly body: object
}

export const reply = (body: object, status = 200): Reply => ({ status, body })

/** Answers requests by `handle`, which changes what the gateway knows. `url` once it is served. */
export class FaultyServer {
  handle: (request: Received) => Reply
  #faults: Array<Fault | undefined> = []
  requests = 0

  constructor(handle: (request: Received) => Reply) {
    this.handle = handle
  }

  /** The next requests meet these, one after the other. */
  fail(faults: ReadonlyArray<Fault | undefined>): void {
    this.#faults = [...faults]
  }

  readonly serve = Effect.suspend(() =>
    Effect.map(
      serve((response, request) => this.#answer(response, request)),
      ({ url }) => url
    )
  )

  #answer(response: ServerResponse, request: Received): void {
    this.requests++
    const fault = this.#faults.shift()
    if (fault === "away") return fail(response, request, 503)
    if (fault === "busy") return fail(response.setHeader("retry-after", "0"), request, 429)
    if (fault === "cut") return void response.destroy()
    const { body, status } = this.handle(request)
    const text = JSON.stringify(body)
    if (fault === "lost") return void response.destroy()
    if (fault === "half")
      return void response.writeHead(status, { "content-length": text.length }).write(text.slice(0, -2), () => response.destroy())
    if (fault === "text") return void response.writeHead(status).end("<html>No JSON</html>")
    json(fault === "nonsense" ? { object: "nonsense", id: 7, data: "none" } : body, status)(response, request)
  }
}

/** A server that quotes what it was sent: its words are not to be told. */
const fail = (response: ServerResponse, request: Received, status: number): void =>
  json(
    {
      error: { type: "api_error", message: `You sent ${JSON.stringify(request)}` },
      name: "INTERNAL_SERVICE_ERROR",
      message: `You sent ${JSON.stringify(request)}`
    },
    status
  )(response, request)
