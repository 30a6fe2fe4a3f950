/** The settings of webhooks, and the layers that follow from them. */
import { type Jobs, Millrace, type Payments, type Registration, type Vault, WebhookSender, Webhooks } from "@millrace/core"
import type { EventStore, StateStore } from "@millrace/event-sourcing"
import { type Duration, Effect, Layer } from "effect"
import * as Setting from "./Setting.ts"

/** Whether webhooks are also posted by http, and to this machine and private networks. */
export const allowPrivate = Setting.make(
  "webhook-private",
  "Whether webhooks may be posted by http, and to this machine and private networks: whoever sets their addresses can then reach these",
  { metavar: "yes|no", parse: Setting.oneOf(["yes", "no"]), expected: "yes or no" },
  "no"
)

export const deliver = Setting.make(
  "webhooks",
  "Whether this process delivers webhooks: on, or off where other processes on the store do",
  { metavar: "on|off", parse: Setting.oneOf(["on", "off"]), expected: "on or off" },
  "on"
)

type Stores = Vault.Vault | EventStore.EventStore | StateStore.StateStore

interface Sending {
  readonly allowPrivate?: boolean
  readonly timeLimit?: Duration.Input
}

/** Posts over HTTP. What that needs is loaded with the first webhook: most hosts have none, and start faster without it. */
const sender = (options: Sending): Layer.Layer<WebhookSender> =>
  Layer.effect(
    WebhookSender,
    Effect.gen(function* () {
      const loaded = Effect.promise(() => import("@millrace/upstreams/webhooks"))
      const sender = yield* Effect.cached(Effect.flatMap(loaded, ({ layer }) => Effect.provide(WebhookSender, layer(options))))
      return {
        check: (url) => Effect.flatMap(sender, ({ check }) => check(url)),
        send: (message) => Effect.flatMap(sender, ({ send }) => send(message))
      }
    })
  )

/** Webhooks of a process that serves, beside the layer of its domain. */
export const serving = ({
  allowPrivate = false,
  timeLimit,
  ...options
}: Millrace.WebhookOptions & Sending = {}): Layer.Layer<Webhooks.Webhooks, never, Stores | Jobs | Payments | Registration> =>
  Millrace.webhooks(options).pipe(Layer.provide(sender({ allowPrivate, ...(timeLimit === undefined ? {} : { timeLimit }) })))

/** Webhooks of a command. */
export const administering = (allowPrivate = false): Layer.Layer<Webhooks.Webhooks, never, Stores> =>
  Webhooks.Webhooks.layer.pipe(Layer.provide(sender({ allowPrivate })))
