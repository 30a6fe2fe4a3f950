/**
 * Mounts Millrace as a request listener of `node:http`, and so of Express and Fastify. `@effect/platform-node` translates between Node's
 * messages and Effect. This file handles what frameworks do to a request before: cut paths, and bodies that are read already.
 */
import { IncomingMessage, type ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect, Exit, Option, Scope } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { together } from "./Together.ts"
import type { App, Direct, Handle } from "./WebHandler.ts"

/** `Received` is what a framework makes of a request, such as Express's. */
export interface Options<Received extends IncomingMessage = IncomingMessage> {
  /** The client's address: by default the other end of the socket. Behind a proxy, the address that it reports, such as Express's `req.ip`. */
  readonly address?: (request: Received) => string | undefined
}

/** The fields that frameworks add to a request: the whole path where they cut it, and a body that an earlier parser has read. */
type Incoming = IncomingMessage & { readonly originalUrl?: unknown; readonly body?: unknown }

/** Returns a request listener. A client that disconnects before it is answered interrupts its call. */
export const toNodeHandler = <Received extends IncomingMessage = IncomingMessage>(
  handle: Handle,
  { address = ({ socket }) => socket.remoteAddress }: Options<Received> = {}
): ((incoming: Received, outgoing: ServerResponse) => void) => {
  const app = Effect.updateService(handle.app ?? appOf(handle), HttpServerRequest.HttpServerRequest, (request) => {
    const message = NodeHttpServerRequest.toIncomingMessage(request)
    const received = (message instanceof ReplayedMessage ? message.original : message) as Received
    return request.modify({ url: urlOf(received), remoteAddress: Option.fromNullishOr(address(received)) })
  })
  // Requests end by themselves, or when the handler drains
  const listening = NodeHttpServer.makeHandler(app, { scope: Scope.makeUnsafe() })
  const { context } = handle
  const listener = Effect.runSync(context === undefined ? listening : Effect.updateContext(listening, () => context))
  const { direct } = handle
  const listen = (incoming: Received, outgoing: ServerResponse): void => listener(withBody(incoming), outgoing)
  // Plain calls of one turn begin together, so that the store confirms all their keys at once
  const begin = together(({ direct, incoming, outgoing }: PlainCall<Received>): void => {
    // Its client may have disconnected since
    if (incoming.socket.destroyed || outgoing.destroyed) return
    if (!isAnsweredDirectly(direct, incoming, outgoing, () => address(incoming))) listen(incoming, outgoing)
  })
  return (incoming, outgoing) => {
    // An `error` event without a listener would end the process; the connection is gone by then
    outgoing.on("error", () => {})
    closeWithConnection(incoming, outgoing)
    if (direct !== undefined && isPlain(incoming)) begin({ direct, incoming, outgoing })
    else listen(incoming, outgoing)
  }
}

/** A request that the direct way may answer. */
interface PlainCall<Received> {
  readonly direct: Direct
  readonly incoming: Received
  readonly outgoing: ServerResponse
}

/**
 * The path and the query that need no rewriting: {@link urlOf} returns them as they are. No part of the path is empty or begins with a
 * dot, and nothing in it is encoded.
 */
export const PLAIN_TARGET = /^(?:\/[\w~@-][\w~@.-]*)+(?:\?[\w~@.+&=%,:/-]+)?$/u

/** The length of an answer, in characters, from which on its request lasts until the client has read it, as in Effect's server. */
const LARGE = 1024 * 1024

/** Whether a request has the form that the direct way takes. */
const isPlain = (incoming: Incoming): boolean =>
  incoming.method === "GET" && incoming.httpVersionMajor === 1 && PLAIN_TARGET.test(targetOf(incoming))

/** Whether the direct way answers a request, now or later. */
const isAnsweredDirectly = (direct: Direct, incoming: Incoming, outgoing: ServerResponse, address: () => string | undefined): boolean => {
  const url = targetOf(incoming)
  const { headers, method = "GET" } = incoming
  // Node joins repeated headers to one text, all but `Set-Cookie`, which no request has
  const head = { method, url, headers: headers as Readonly<Record<string, string | undefined>> }
  const call = direct({ ...head, address }, (answer, sent) => {
    if (answer === undefined || outgoing.destroyed || outgoing.headersSent) return sent()
    outgoing.writeHead(answer.status, answer.headers).end(answer.body)
    if (answer.body.length < LARGE) sent()
    else outgoing.once("close", sent)
  })
  if (call !== undefined && !outgoing.writableEnded) {
    outgoing.on("close", () => {
      if (!outgoing.writableEnded) call.abandon()
    })
  }
  return call !== undefined
}

/**
 * Closes an answer that waits behind earlier answers of its connection when the connection closes. Node 22 closes only the answer that it
 * is writing, so the requests behind it would keep running, with the files and the credits that they hold.
 */
const closeWithConnection = ({ socket }: IncomingMessage, outgoing: ServerResponse): void => {
  if (outgoing.socket !== null) return
  const close = () => {
    outgoing.destroy()
    outgoing.emit("close")
  }
  socket.once("close", close)
  outgoing.once("close", () => socket.off("close", close))
}

/** A path that no route has. */
const NOWHERE = "/%00"

/** The target of a request, whole where a framework cut it. */
const targetOf = ({ url = "/", originalUrl }: Incoming): string => (typeof originalUrl === "string" ? originalUrl : url)

/** The path and query of a request as the URL standard writes them, without the host. */
const urlOf = (incoming: Incoming): string => {
  const target = targetOf(incoming)
  const base = target.startsWith("/") ? "http://localhost" : ""
  const normal = withoutBackslashes(`${base}${target}`)
  if (!URL.canParse(normal)) return NOWHERE
  const { hash, pathname, search } = new URL(normal)
  return `${pathname}${search}${hash}`
}

/** The URL standard takes a backslash for a slash. A path with one is another path, so it is encoded before. */
const withoutBackslashes = (target: string): string => {
  const [path = "", ...query] = target.split("?")
  return path.includes("\\") ? [path.replaceAll("\\", "%5C"), ...query].join("?") : target
}

// bodies that were read before

/** A request whose body an earlier body parser has read: the same request with the parsed body. */
class ReplayedMessage extends IncomingMessage {
  readonly original: IncomingMessage

  constructor(original: Incoming) {
    super(original.socket)
    this.original = original
    this.method = original.method ?? "GET"
    this.url = original.url ?? "/"
    this.httpVersion = original.httpVersion
    this.httpVersionMajor = original.httpVersionMajor
    this.httpVersionMinor = original.httpVersionMinor
    this.headers = original.headers
    this.rawHeaders = original.rawHeaders
    this.complete = true
    const { body } = original
    if (body !== undefined && body !== null) this.push(bytesOf(body))
    this.push(null)
  }
}

const withBody = (incoming: Incoming): IncomingMessage =>
  incoming.readableEnded || incoming.readableDidRead ? new ReplayedMessage(incoming) : incoming

const bytesOf = (body: unknown): Uint8Array =>
  body instanceof Uint8Array ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body))

// other web handlers

/** A web handler that is not one of ours, such as one that a host wrapped around ours. */
const appOf = (handle: Handle): App =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const abort = yield* Effect.acquireRelease(
      Effect.sync(() => new AbortController()),
      (abort, exit) => Effect.sync(() => Exit.isFailure(exit) && abort.abort())
    )
    // A web request cannot have every method and every host that a Node request has
    const received = yield* Effect.exit(HttpServerRequest.toWeb(request, { signal: abort.signal }))
    if (Exit.isFailure(received)) return HttpServerResponse.empty({ status: 400 })
    const peer = { address: Option.getOrUndefined(request.remoteAddress) }
    return HttpServerResponse.fromWeb(yield* Effect.interruptible(Effect.promise(() => handle(received.value, peer))))
  })
