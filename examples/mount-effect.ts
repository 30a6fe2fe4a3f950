/** Millrace among the routes of a host that uses Effect: `npm run mount-effect -w examples`. */
import { createServer } from "node:http"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Http, WebHandler } from "@millrace/http"
import { Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { api, services } from "./host.ts"

/** The host's own routes get request ids and error objects, too. */
const routes = Layer.mergeAll(Http.layer(api), HttpRouter.add("GET", "/", HttpServerResponse.text("The host's own page")))

export const layer = (port = 0) =>
  HttpRouter.serve(routes, { routerConfig: WebHandler.routerConfig, disableLogger: true }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" }))
  )

if (import.meta.main) NodeRuntime.runMain(Layer.launch(Layer.provide(layer(8787), services())))
