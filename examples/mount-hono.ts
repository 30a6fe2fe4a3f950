/** Millrace in Hono on Node: `npm run mount-hono -w examples`. */
import { serve } from "@hono/node-server"
import { getConnInfo } from "@hono/node-server/conninfo"
import { Hono } from "hono"
import { demonstrate, type Mountable, shutDown, urlOf } from "./host.ts"

export const mount = async ({ handle, close }: Mountable, port = 0) => {
  const app = new Hono()
  app.all("/api/v1/*", (context) => handle(context.req.raw, { address: getConnInfo(context).remote.address }))
  app.post("/echo", async (context) => context.json(await context.req.json()))
  app.get("/", (context) => context.text("The host's own page"))
  const server = serve({ fetch: app.fetch, port, hostname: "127.0.0.1" })
  await new Promise((resolve) => server.once("listening", resolve))
  return { url: urlOf(server), stop: () => shutDown(server, close) }
}

if (import.meta.main) await demonstrate(mount)
