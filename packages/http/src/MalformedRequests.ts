/** Answers malformed requests, after the earlier requests of the same connection, which may have been charged. */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { type ErrorCode, termsOf } from "./ErrorCode.ts"

/** Bytes that all headers of a request may have together. */
export const MAX_HEADERS = 16 * 1024

/** The reason to refuse a request. */
interface Refusal {
  readonly code: ErrorCode
  readonly message: string
}

const NO_REQUEST: Refusal = { code: "bad_request", message: "This is no HTTP request." }
const NO_HOST: Refusal = { code: "bad_request", message: "The request must have exactly one Host header." }
const NO_TUNNEL: Refusal = { code: "bad_request", message: "This server is no proxy." }

/** By the code of Node's error; {@link NO_REQUEST} for all others. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { code: "headers_too_large", message: `The headers are larger than ${MAX_HEADERS} bytes.` },
  ERR_HTTP_REQUEST_TIMEOUT: { code: "request_timeout", message: "The request did not arrive in time." }
}

/** How long a client may take to read a refusal before its connection is cut, in milliseconds. */
const CLOSING_GRACE = 500

/** The answers of one connection. */
interface Connection {
  /** Those that are not sent yet. */
  readonly open: Set<ServerResponse>
  /** The last request whose headers were read, and its answer; undefined once both are complete. */
  last?: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse } | undefined
  /** Closes the connection once all answers are sent. A connection that has this takes no more requests. */
  close?: () => void
}

/** Passes the requests of a server to a listener, and refuses malformed ones. `requestId` makes the id of a refusal. */
export const serve = (
  server: Server,
  listener: (incoming: IncomingMessage, outgoing: ServerResponse) => void,
  requestId: () => string
): void => {
  const connections = new WeakMap<Duplex, Connection>()
  const connectionOf = (socket: Duplex): Connection => {
    const connection = connections.get(socket) ?? { open: new Set() }
    connections.set(socket, connection)
    return connection
  }
  const accept = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const connection = connectionOf(incoming.socket)
    if (connection.close !== undefined) return
    noteAnswer(connection, incoming, outgoing)
    if (hasHost(incoming)) return listener(incoming, outgoing)
    connection.close = () => close(incoming.socket)
    answer(outgoing, NO_HOST, requestId())
  }
  server.on("request", accept)
  server.on("checkExpectation", accept)
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET") socket.destroy()
    else fail(connectionOf(socket), socket, REFUSALS[error.code ?? ""] ?? NO_REQUEST, requestId)
  })
  server.on("connect", (_, socket) => {
    // Node leaves the socket and its errors to this listener
    socket.on("error", () => socket.destroy())
    fail(connectionOf(socket), socket, NO_TUNNEL, requestId)
  })
}

/** RFC 9112, section 3.2: a request of HTTP/1.1 must name exactly one host. */
const hasHost = ({ httpVersion, rawHeaders }: IncomingMessage): boolean => {
  let hosts = 0
  // Names and values in turn. A list of its own would be made for each request
  for (let index = 0; index < rawHeaders.length; index += 2) if (rawHeaders[index]?.toLowerCase() === "host") hosts++
  return hosts === 1 || (hosts === 0 && httpVersion === "1.0")
}

const noteAnswer = (connection: Connection, incoming: IncomingMessage, outgoing: ServerResponse): void => {
  connection.last = { incoming, outgoing }
  connection.open.add(outgoing)
  outgoing.once("close", () => {
    connection.open.delete(outgoing)
    if (connection.last?.outgoing === outgoing && incoming.complete) connection.last = undefined
    if (connection.open.size === 0) connection.close?.()
  })
}

/** Ends an unreadable connection, once every earlier request is answered. */
const fail = (connection: Connection, socket: Duplex, refusal: Refusal, requestId: () => string): void => {
  // Node reports the same error again with every further byte
  if (connection.close !== undefined) return
  const { last, open } = connection
  if (last === undefined || last.incoming.complete) connection.close = () => close(socket, messageOf(refusal, requestId()))
  else {
    // The body of the last request is malformed. The request may have been answered before its body arrived
    connection.close = () => close(socket)
    if (!last.outgoing.headersSent) answer(last.outgoing, refusal, requestId())
    // Node forgets an answered request, so a reader of its body would wait for ever
    socket.once("close", () => last.incoming.destroy())
  }
  if (open.size === 0) connection.close()
}

/** Sends the last bytes of a connection. Cutting it at once could discard them before the client reads them. */
const close = (socket: Duplex, bytes?: string): void => {
  if (socket.writableEnded || socket.destroyed) return
  socket.end(bytes)
  const cut = setTimeout(() => socket.destroy(), CLOSING_GRACE)
  socket.once("close", () => clearTimeout(cut))
}

const answer = (outgoing: ServerResponse, refusal: Refusal, requestId: string): void => {
  outgoing.writeHead(termsOf(refusal.code).status, headersOf(refusal, requestId))
  outgoing.end(bodyOf(refusal, requestId))
}

/** The refusal as bytes, for a connection without an open request. */
const messageOf = (refusal: Refusal, requestId: string): string => {
  const { status } = termsOf(refusal.code)
  const headers = Object.entries(headersOf(refusal, requestId)).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...headers, "", bodyOf(refusal, requestId)].join("\r\n")
}

const headersOf = (refusal: Refusal, requestId: string): Readonly<Record<string, string>> => ({
  "Content-Type": "application/json",
  "Content-Length": String(Buffer.byteLength(bodyOf(refusal, requestId))),
  "X-Request-Id": requestId,
  "X-Content-Type-Options": "nosniff",
  "X-Should-Retry": String(termsOf(refusal.code).retry),
  "Cache-Control": "private, no-store",
  Connection: "close"
})

const bodyOf = ({ code, message }: Refusal, requestId: string): string =>
  JSON.stringify({ error: { code, message, request_id: requestId } })
