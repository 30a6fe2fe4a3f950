/** A web handler behind `node:http`, and so behind Express and Fastify: a request listener that lets nothing of Node's through. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { WebHandler } from "./WebHandler.ts"

export interface Options {
  /** The client's address: by default the other end of the socket. Behind a proxy, what that says, such as Express's `req.ip`. */
  readonly address?: (request: IncomingMessage) => string | undefined
}

/** What frameworks add to a request: the whole path where they mount by cutting it, and a body that an earlier parser has read. */
type Incoming = IncomingMessage & { readonly originalUrl?: unknown; readonly body?: unknown }

/** A client that disconnects before the answer is out aborts its request, and with it the call. */
export const toNodeHandler = (
  handle: WebHandler["handle"],
  { address = ({ socket }) => socket.remoteAddress }: Options = {}
): ((incoming: IncomingMessage, outgoing: ServerResponse) => void) => {
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const abort = new AbortController()
    outgoing.once("close", () => {
      if (!outgoing.writableFinished) abort.abort()
    })
    await send(await handle(requestOf(incoming, abort.signal), { address: address(incoming) }), outgoing)
  }
  return (incoming, outgoing) => {
    // Whatever is left to fail here is the connection
    serve(incoming, outgoing).catch(() => outgoing.destroy())
  }
}

// in

type Payload = NonNullable<RequestInit["body"]>

const requestOf = (incoming: Incoming, signal: AbortSignal): Request => {
  const { url = "/", originalUrl } = incoming
  const method = methodOf(incoming)
  const target = typeof originalUrl === "string" ? originalUrl : url
  const body = method === "GET" || method === "HEAD" ? null : bodyOf(incoming)
  return new Request(urlOf(target), { method, headers: headersOf(incoming), signal, body, ...(body === null ? {} : { duplex: "half" }) })
}

/** A web request cannot be a TRACE. No path takes one, so any name will do that no path takes. */
const methodOf = ({ method = "GET" }: IncomingMessage): string => (method === "TRACE" ? "X-TRACE" : method)

/** Only the path and the query count: whatever host is named, this is the one that was asked. */
const urlOf = (target: string): string => {
  if (target.startsWith("/")) return `http://localhost${target}`
  return URL.canParse(target) ? target : "http://localhost/"
}

/** As Node joined them: of headers that may be there once, the first; of others, a list. */
const headersOf = ({ headers }: IncomingMessage): Headers => {
  const sent = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(":") || value === undefined) continue
    sent.set(name, Array.isArray(value) ? value.join(", ") : value)
  }
  return sent
}

/** The body still to come, or what an earlier parser made of it. */
const bodyOf = (incoming: Incoming): Payload | null => {
  const { body, readableEnded, readableDidRead, headers } = incoming
  if (readableEnded || readableDidRead) return body === undefined || body === null ? null : parsed(body)
  return headers["transfer-encoding"] === undefined && headers["content-length"] === undefined ? null : streamOf(incoming)
}

const parsed = (body: unknown): Payload => (typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body))

/** Read no faster than it is asked for. Giving it up leaves the connection whole, so that the answer gets out. */
const streamOf = (incoming: IncomingMessage): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        let isOver = false
        const end = (then: () => void) => () => {
          if (!isOver) then()
          isOver = true
        }
        incoming.pause()
        incoming.on("data", (chunk: Buffer) => {
          if (isOver) return
          incoming.pause()
          controller.enqueue(chunk)
        })
        incoming.once(
          "end",
          end(() => controller.close())
        )
        incoming.once(
          "error",
          end(() => controller.error(new Error("The connection failed")))
        )
        incoming.once(
          "close",
          end(() => controller.error(new Error("The connection closed")))
        )
      },
      pull: () => void incoming.resume(),
      cancel: () => {
        incoming.removeAllListeners("data")
        incoming.resume()
      }
    },
    { highWaterMark: 0 }
  )

// out

const send = async (response: Response, outgoing: ServerResponse): Promise<void> => {
  if (outgoing.destroyed) return response.body?.cancel()
  outgoing.statusCode = response.status
  for (const [name, value] of response.headers) outgoing.appendHeader(name, value)
  if (response.body === null) return void outgoing.end()
  if (response.headers.has("content-length")) return void outgoing.end(new Uint8Array(await response.arrayBuffer()))
  for await (const chunk of response.body) {
    if (outgoing.destroyed) return
    if (!outgoing.write(chunk)) await drained(outgoing)
  }
  outgoing.end()
}

const drained = (outgoing: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      outgoing.off("drain", done).off("close", done)
      resolve()
    }
    outgoing.once("drain", done).once("close", done)
  })
