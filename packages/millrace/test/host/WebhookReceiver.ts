/** A receiver of webhooks on a loopback socket, which verifies what it gets as Standard Webhooks says. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Webhook } from "standardwebhooks"

export interface Got {
  readonly id: string
  readonly body: { readonly type: string; readonly timestamp: string; readonly data: Readonly<Record<string, unknown>> }
}

/** A receiver that verifies what it gets. `answer` may also leave the sender without an answer. */
export const receiver = async (secret: () => string, answer: (response: ServerResponse, got: Got, time: number) => void) => {
  const got: Array<Got> = []
  const refused: Array<string> = []
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    let text = ""
    for await (const chunk of request.setEncoding("utf8")) text += chunk
    try {
      const body = new Webhook(secret()).verify(text, request.headers as Record<string, string>) as Got["body"]
      const id = String(request.headers["webhook-id"])
      got.push({ id, body })
      answer(response, { id, body }, got.filter((other) => other.id === id).length)
    } catch (error) {
      refused.push(String(error))
      response.writeHead(400).end()
    }
  }
  const server = createServer((request, response) => void take(request, response))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  servers.push(server)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?token=hidden`, got, refused }
}

const servers: Array<Server> = []

export const closeReceivers = (): void => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
}
