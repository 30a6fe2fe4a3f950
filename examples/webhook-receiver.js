// Receives webhooks: verifies each, answers at once, and does nothing twice. `npm run webhook-receiver -w examples` serves it on port 8080.
import { createServer } from "node:http"
import { Webhook } from "standardwebhooks"

const webhook = new Webhook(process.env.WEBHOOK_SECRET ?? "") // whsec_...
const seen = new Set() // keep these ids in your database: a notice may come again, also after a restart

const server = createServer(async (request, response) => {
  let body = ""
  for await (const chunk of request.setEncoding("utf8")) body += chunk
  let notice
  try {
    notice = webhook.verify(body, request.headers) // throws for anything that was not sent with this secret in the last five minutes
  } catch {
    response.writeHead(400).end()
    return
  }
  const id = request.headers["webhook-id"]
  if (!seen.has(id)) {
    seen.add(id)
    console.log(notice.type, JSON.stringify(notice.data))
  }
  response.writeHead(204).end() // anything but 2xx, and it comes again
})

server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => console.log(`Listening on ${server.address().port}`))
