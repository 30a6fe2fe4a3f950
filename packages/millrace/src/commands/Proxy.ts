/** `proxy`: a proxy node in a process of its own, until a signal ends it. `proxy sessions`: what sessions carried. */
import { ProxyNodes, ProxySessions, Vault } from "@millrace/core"
import { Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Sessions from "../administration/ProxySessions.ts"
import { fail } from "../Failure.ts"
import * as Logging from "../Logging.ts"
import * as Output from "../Output.ts"
import * as Progress from "../Progress.ts"
import * as ProxySettings from "../ProxySettings.ts"
import * as Signals from "../Signals.ts"
import * as StoreUrl from "../StoreUrl.ts"
import * as Telemetry from "../Telemetry.ts"

const nodeLayer = (settings: ProxySettings.Settings, store: string) =>
  ProxySettings.serving(settings).pipe(
    Layer.provide(Layer.mergeAll(ProxySessions.layer(), ProxyNodes.layer)),
    Layer.provide(Vault.Vault.layer),
    Layer.provide(StoreUrl.layer({ url: store, mode: "open" }))
  )

const sessions = Administration.query(
  "sessions",
  "List proxy sessions with the bytes that they carried, as their nodes counted them some seconds ago",
  { "millrace proxy sessions --open": "List the sessions that can be used now" },
  StoreUrl.logLayer,
  { open: Flag.Boolean("open").pipe(Flag.withDescription("Only those that can be used now"), Flag.withDefault(false)) },
  ({ open }) => Progress.watch("Reading the log")(Sessions.list(open))
)

export const proxy = Command.make(
  "proxy",
  { store: Administration.store, ...ProxySettings.flags, json: Output.json },
  ({ json, store, ...settings }) => {
    if (!ProxySettings.isOn(settings)) return fail("there is nothing to serve: give --proxy HOST:PORT, --socks HOST:PORT, or both")
    const forPeople = Output.isForPeople(json)
    const announce = Effect.flatMap(ProxySettings.Serving, (node) =>
      // The node continues when its output is closed
      Effect.ignore(Output.line(forPeople ? `Proxying on ${ProxySettings.announced(node)}` : JSON.stringify({ proxy: node })))
    )
    return Effect.andThen(announce, Effect.never).pipe(
      Effect.provide(nodeLayer(settings, store)),
      Effect.provide(Telemetry.layer),
      Effect.provide(Logging.layer(forPeople ? "warn" : "info")),
      Signals.endsBySignal
    )
  }
).pipe(
  Command.withSubcommands([sessions]),
  Command.withShortDescription("Serve a proxy node for the proxy sessions of a store, until SIGTERM or SIGINT"),
  Command.withDescription(
    "Serve a proxy node for the proxy sessions of a store, until SIGTERM or SIGINT; its connections are closed then. Hosts that serve the API over the same store offer it to their callers"
  ),
  Administration.withExamples({
    "millrace proxy --proxy 127.0.0.1:8080 --socks 127.0.0.1:1080 --proxy-country DE": "Serve both kinds of proxy to this machine",
    "millrace proxy --proxy 0.0.0.0:8080 --proxy-host proxy.example.com --proxy-country DE --proxy-tls cert.pem,key.pem":
      "Serve HTTP and HTTPS proxying to everybody"
  })
)
