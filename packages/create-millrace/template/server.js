import express from "express"
import { createMillrace, MillraceError } from "millrace"
import { greet } from "./operations.js"

// Log, state, files and master key are in ./data. Copy master.key elsewhere: without it nothing that is sealed can be read.
const millrace = await createMillrace({ store: "sqlite:./data/millrace.db", operations: [greet] })

const app = express()
app.use(millrace.handler) // /api/v1, /docs, /health and /ready

// Your own sign-up goes here. Check that the address belongs to the caller before you say `verified`.
app.post("/sign-up/:email", async (request, response) => {
  const account = await millrace.accounts.open({ email: request.params.email, verified: true })
  const { key } = await millrace.keys.issue(account)
  response.status(201).json({ account, key })
})

// What Millrace refuses has a code and a sentence for the caller, such as `email_taken`
app.use((error, _request, response, next) => {
  if (!(error instanceof MillraceError) || error.code.endsWith("_unavailable")) return next(error)
  response.status(400).json({ error: { code: error.code, message: error.message } })
})

const server = app.listen(Number(process.env.PORT ?? 8787), "127.0.0.1", async (error) => {
  if (error) {
    console.error(`This port cannot be used: ${error.message}`)
    process.exitCode = 1
    return millrace.close()
  }
  const { port } = server.address()
  console.log(`Listening on http://127.0.0.1:${port}

  curl -X POST http://127.0.0.1:${port}/sign-up/ada@example.com
  curl http://127.0.0.1:${port}/api/v1/greeting/Ada -H 'Authorization: Bearer mr_live_...'`)
})

const stop = async () => {
  server.close()
  await millrace.close() // running calls end first
  server.closeAllConnections()
}
process.once("SIGINT", stop)
process.once("SIGTERM", stop)
