/** Millrace in Fastify 5, as a plugin without Fastify's own body parsers: `npm run mount-fastify -w examples`. */
import { toNodeHandler } from "@millrace/http"
import fastify from "fastify"
import { demonstrate, type Mountable } from "./host.ts"

export const mount = async ({ handle, close }: Mountable, port = 0) => {
  const app = fastify()
  app.register(async (plugin) => {
    // Millrace parses bodies, with its own limits and errors
    plugin.removeAllContentTypeParsers()
    plugin.addContentTypeParser("*", (_request, _body, done) => done(null))
    plugin.all("/api/v1/*", (request, reply) => {
      reply.hijack()
      // The client's address, by the option `trustProxy`
      toNodeHandler(handle, { address: () => request.ip })(request.raw, reply.raw)
    })
  })
  app.post("/echo", async ({ body }) => body)
  app.get("/", async () => "The host's own page")
  // Before the server waits for its connections to close
  app.addHook("preClose", close)

  const url = await app.listen({ port, host: "127.0.0.1" })
  return { url, stop: () => app.close() }
}

if (import.meta.main) await demonstrate(mount)
