/** A web handler behind `node:http`, and so behind Express and Fastify: a request listener that lets nothing of Node's through. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Cookies, HttpServerResponse } from "effect/http"
import type { Handle } from "./WebHandler.ts"

/** `Received` is what a framework makes of a request, such as Express's. */
export interface Options<Received extends IncomingMessage = IncomingMessage> {
  /** The client's address: by default the other end of the socket. Behind a proxy, what that says, such as Express's `req.ip`. */
  readonly address?: (request: Received) => string | undefined
}

/** What frameworks add to a request: the whole path where they mount by cutting it, and a body that an earlier parser has read. */
type Incoming = IncomingMessage & { readonly originalUrl?: unknown; readonly body?: unknown }

/** A client that disconnects before the answer is out aborts its request, and with it the call. */
export const toNodeHandler = <Received extends IncomingMessage = IncomingMessage>(
  handle: Handle,
  { address = ({ socket }) => socket.remoteAddress }: Options<Received> = {}
): ((incoming: Received, outgoing: ServerResponse) => void) => {
  const serve = async (incoming: Received, outgoing: ServerResponse): Promise<void> => {
    const abort = new AbortController()
    outgoing.once("close", () => {
      if (!outgoing.writableFinished) abort.abort()
    })
    const peer = { address: address(incoming), signal: abort.signal }
    // A signal of the request's own is what a handler of somebody else's looks at
    if (handle.answer === undefined) return send(await handle(requestOf(incoming, abort.signal), peer), outgoing)
    const answer = await handle.answer(requestOf(incoming), peer)
    if (!isWhole(answer))
      return send(HttpServerResponse.toWeb(answer, { withoutBody: incoming.method === "HEAD", signal: abort.signal }), outgoing)
    outgoing.writeHead(answer.status, answer.headers)
    outgoing.end(answer.body._tag === "Uint8Array" ? answer.body.body : undefined)
  }
  return (incoming, outgoing) => {
    // Whatever is left to fail here is the connection
    serve(incoming, outgoing).catch(() => outgoing.destroy())
  }
}

/** Whether it is all there, and says all of itself in its headers. */
const isWhole = ({ body, cookies }: HttpServerResponse.HttpServerResponse): boolean =>
  (body._tag === "Uint8Array" || body._tag === "Empty") && Cookies.isEmpty(cookies)

// in

type Payload = NonNullable<RequestInit["body"]>

const requestOf = (incoming: Incoming, signal?: AbortSignal): Request => {
  const { url = "/", originalUrl } = incoming
  const target = typeof originalUrl === "string" ? originalUrl : url
  const method = methodOf(incoming)
  const body = method === "GET" || method === "HEAD" ? undefined : bodyOf(incoming)
  return new Request(urlOf(target), {
    method,
    headers: headersOf(incoming),
    ...(body === undefined ? {} : { body, duplex: "half" }),
    ...(signal === undefined ? {} : { signal })
  })
}

/** A web request cannot be a TRACE. No path takes one, so any name will do that no path takes. */
const methodOf = ({ method = "GET" }: IncomingMessage): string => (method === "TRACE" ? "X-TRACE" : method)

/** Only the path and the query count: whatever host is named, this is the one that was asked. */
const urlOf = (target: string): string => {
  if (target.startsWith("/")) return `http://localhost${target}`
  return URL.canParse(target) ? target : "http://localhost/"
}

/** As Node joined them: of headers that may be there once, the first; of others, a list. */
const headersOf = ({ headers, httpVersionMajor }: IncomingMessage): Record<string, string> => {
  const sent: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || (httpVersionMajor > 1 && name.startsWith(":"))) continue
    sent[name] = typeof value === "string" ? value : value.join(", ")
  }
  return sent
}

/** The body still to come, or what an earlier parser made of it. */
const bodyOf = (incoming: Incoming): Payload | undefined => {
  const { body, readableEnded, readableDidRead, headers } = incoming
  if (readableEnded || readableDidRead) return body === undefined || body === null ? undefined : parsed(body)
  return headers["transfer-encoding"] === undefined && headers["content-length"] === undefined ? undefined : streamOf(incoming)
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
