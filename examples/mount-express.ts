/** Millrace in Express 5, behind a body parser that reads every request first: `npm run mount-express -w examples`. */
import { toNodeHandler } from "@millrace/http"
import express, { type Request } from "express"
import { demonstrate, type Mountable, shutDown, urlOf } from "./host.ts"

export const mount = async ({ handle, close }: Mountable, port = 0) => {
  const app = express()
  app.use(express.json())
  // The client's address, by the setting "trust proxy"
  app.use("/api/v1", toNodeHandler(handle, { address: ({ ip }: Request) => ip }))
  app.post("/echo", (request, response) => {
    response.json(request.body)
  })
  app.get("/", (_, response) => {
    response.send("The host's own page")
  })
  const server = app.listen(port, "127.0.0.1")
  await new Promise((resolve) => server.once("listening", resolve))
  return { url: urlOf(server), stop: () => shutDown(server, close) }
}

if (import.meta.main) await demonstrate(mount)
