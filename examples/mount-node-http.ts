/** Millrace in a plain `node:http` server, beside the host's own pages: `npm run mount-node-http -w examples`. */
import { createServer } from "node:http"
import { toNodeHandler } from "@millrace/http"
import { demonstrate, type Mountable, shutDown, urlOf } from "./host.ts"

export const mount = async ({ handle, close }: Mountable, port = 0) => {
  const millrace = toNodeHandler(handle)
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/api/v1/") === true) millrace(request, response)
    else response.end("The host's own page")
  })
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  return { url: urlOf(server), stop: () => shutDown(server, close) }
}

if (import.meta.main) await demonstrate(mount)
