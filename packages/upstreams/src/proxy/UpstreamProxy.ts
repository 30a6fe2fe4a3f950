/** The client's side of somebody else's proxy: opens tunnels through it. It is given an address that was checked, never a name. */
import { request } from "node:http"
import { connect, isIP, isIPv6, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { SocksClient } from "socks"
import { NotConnected, type Reason } from "./Destinations.ts"

export interface UpstreamProxy {
  /** `http:`, `https:`, `socks5:` or `socks5h:`, with user name and password where it asks for them. It may be in a private network. */
  readonly url: URL
  /** Where its connections leave from: ISO 3166-1 alpha-2, in capitals. */
  readonly country: string
  readonly region?: string
  /** The address that its connections leave from, where that is known. */
  readonly exit?: string
}

/** The upstream cannot be connected, refuses the credentials, or breaks the protocol: no destination would be reached through it. */
export class UpstreamFailed extends Error {
  override readonly name = "UpstreamFailed"
}

/** No answer in time: the fault of the upstream or of the destination. */
export class Unanswered extends NotConnected {
  constructor() {
    super("timeout")
  }
}

const PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443, "socks5:": 1080, "socks5h:": 1080 }

/** The host and port of an upstream, as a socket takes them. */
export const endpointOf = ({ hostname, port, protocol }: URL): { readonly host: string; readonly port: number } => ({
  host: hostname.startsWith("[") ? hostname.slice(1, -1) : hostname,
  port: Number(port) || (PORTS[protocol] ?? 0)
})

/** Why a text is not the URL of an upstream that can be used; undefined if it is one. */
export const faultOf = (url: URL | null): string | undefined => {
  if (url === null) return "not a URL"
  if (!(url.protocol in PORTS)) return "neither http, https, socks5 nor socks5h"
  if (url.hostname === "") return "without a host"
  return undefined
}

/** An upstream for logs: without its credentials. */
export const shown = ({ url }: UpstreamProxy): string => `${url.protocol}//${url.host}`

/** Connects to the upstream itself; with `https:`, its certificate is checked. Rejects with {@link UpstreamFailed}. */
export const dial = ({ url }: UpstreamProxy, timeLimit: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const at = { ...endpointOf(url), allowHalfOpen: true }
    const isTls = url.protocol === "https:"
    const socket = isTls
      ? connectTls({ ...at, ALPNProtocols: ["http/1.1"], ...(isIP(at.host) ? {} : { servername: at.host }) })
      : connect(at)
    socket.setNoDelay(true)
    const failed = (why: string) => {
      clearTimeout(timer)
      socket.destroy()
      reject(new UpstreamFailed(why))
    }
    const timer = setTimeout(() => failed("it does not answer"), timeLimit)
    const onError = (error: Error) => failed("code" in error ? String(error.code) : error.message)
    socket.once("error", onError)
    socket.once(isTls ? "secureConnect" : "connect", () => {
      clearTimeout(timer)
      socket.off("error", onError)
      resolve(socket)
    })
  })

/** Statuses that are not the upstream's own failure. Any other means that the tunnel failed. */
const REASONS: Readonly<Record<number, Reason>> = { 403: "forbidden", 504: "timeout" }

/** Gives the socket back as it was: nobody reads it, and nothing that came is lost. */
const handedOver = (socket: Socket, early: Buffer): Socket => {
  socket.pause()
  if (early.length > 0) socket.unshift(early)
  return socket
}

const byHttp = (socket: Socket, { password, username }: URL, target: string, timeLimit: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64")
    const headers = { host: target, ...(username === "" ? {} : { "proxy-authorization": `Basic ${login}` }) }
    const call = request({ method: "CONNECT", path: target, headers, createConnection: () => socket })
    const timer = setTimeout(() => call.destroy(new Unanswered()), timeLimit)
    const settled = (error: Error) => {
      clearTimeout(timer)
      reject(error)
    }
    call.once("error", (error: Error) => {
      const isNonsense = "code" in error && String(error.code).startsWith("HPE_")
      // Many hang up when the destination refuses
      const trouble = error instanceof Unanswered ? error : new NotConnected("failed")
      settled(isNonsense ? new UpstreamFailed("it does not speak HTTP") : trouble)
    })
    call.once("connect", ({ statusCode = 0 }, _, early: Buffer) => {
      if (statusCode === 401 || statusCode === 407) return settled(new UpstreamFailed("it refuses the credentials"))
      if (statusCode < 200 || statusCode > 299) return settled(new NotConnected(REASONS[statusCode] ?? "failed"))
      clearTimeout(timer)
      resolve(handedOver(socket, early))
    })
    call.end()
  })

const REJECTED = /rejected connection - (?<code>\w+)/u

const REJECTIONS: Readonly<Record<string, Reason>> = {
  NotAllowed: "forbidden",
  NetworkUnreachable: "unreachable",
  HostUnreachable: "unreachable",
  ConnectionRefused: "refused",
  TTLExpired: "timeout"
}

const troubleOf = (error: unknown): Error => {
  const message = error instanceof Error ? error.message : String(error)
  const code = REJECTED.exec(message)?.groups?.["code"]
  if (code !== undefined) return new NotConnected(REJECTIONS[code] ?? "failed")
  if (message === "Socket closed") return new NotConnected("failed")
  return message === "Proxy connection timed out" ? new Unanswered() : new UpstreamFailed(message)
}

const bySocks = async (socket: Socket, url: URL, address: string, port: number, timeLimit: number): Promise<Socket> => {
  const login = url.username === "" ? {} : { userId: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
  await SocksClient.createConnection({
    proxy: { ...endpointOf(url), type: 5, ...login },
    existing_socket: socket,
    command: "connect",
    destination: { host: address, port },
    timeout: timeLimit
  }).catch((error: unknown) => {
    throw troubleOf(error)
  })
  // The package lets the socket flow in the next turn, whether or not somebody reads it by then
  const early: Array<Buffer> = []
  const keep = (bytes: Buffer) => void early.push(bytes)
  socket.on("data", keep)
  await new Promise((resume) => setImmediate(resume))
  socket.off("data", keep)
  return handedOver(socket, Buffer.concat(early))
}

/** Opens a tunnel to an address, over a socket that {@link dial} opened. Rejects with `UpstreamFailed`, `Unanswered` or `NotConnected`. */
export const tunnel = async ({ url }: UpstreamProxy, socket: Socket, address: string, port: number, timeLimit: number): Promise<Socket> => {
  const onError = () => {}
  socket.on("error", onError)
  try {
    if (!url.protocol.startsWith("http")) return await bySocks(socket, url, address, port, timeLimit)
    return await byHttp(socket, url, `${isIPv6(address) ? `[${address}]` : address}:${port}`, timeLimit)
  } catch (error) {
    socket.destroy()
    throw error
  }
}
