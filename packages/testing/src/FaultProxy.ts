/**
 * A way to a server on this machine that fails as networks do. Connections through it are real; what goes along them is held up, cut off
 * or swallowed, in either direction, as it is told while they stand. It listens on the loopback interface only, and closes with its scope.
 */
import { connect, createServer, type Server, type Socket } from "node:net"
import { Effect, Schema, type Scope } from "effect"

/**
 * What becomes of bytes on their way:
 * - `delay`: they arrive `millis` later, in order
 * - `reset`: they do not arrive; both ends see the connection reset
 * - `cut`: `after` more bytes of each connection arrive; then as `reset`
 * - `halfOpen`: they do not arrive; the end that they were for sees the connection reset, the end that sent them hears nothing any more
 * - `blackHole`: neither they nor what follows arrive, the end of the connection included, and nobody is told
 *
 * A connection that lost bytes has lost them: it stays cut, half-open or swallowed whatever is set later.
 */
export type Fault =
  | { readonly _tag: "delay"; readonly millis: number }
  | { readonly _tag: "reset" }
  | { readonly _tag: "cut"; readonly after: number }
  | { readonly _tag: "halfOpen" }
  | { readonly _tag: "blackHole" }

/** `up`: what clients send to the server. `down`: what it sends to them. */
export interface Faults {
  readonly up?: Fault
  readonly down?: Fault
}

export interface FaultProxy {
  readonly port: number
  /**
   * From now on, whatever is sent on any connection meets these, new connections included; none by default. After so many strikes, all
   * passes again. A delay is no strike.
   */
  readonly set: (faults?: Faults, strikes?: number) => void
  /** How often a connection was cut, half-opened or swallowed since the start. */
  readonly struck: () => number
  /** Connections that clients hold open now, also those that lead nowhere any more. */
  readonly connections: () => number
  /** Resets all connections now. */
  readonly reset: () => void
}

export class NotListening extends Schema.TaggedError<NotListening>()("NotListening", { reason: Schema.String }) {}

const HOST = "127.0.0.1"

/** A proxy on a free port, to a port of the loopback interface. */
export const make = (to: number): Effect.Effect<FaultProxy, NotListening, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<Proxy, NotListening>((resume) => {
        const proxy = new Proxy(to)
        proxy.server.once("error", (error) => resume(Effect.fail(new NotListening({ reason: error.message }))))
        proxy.server.listen(0, HOST, () => resume(Effect.succeed(proxy)))
      }),
      (proxy) => Effect.promise(() => proxy.close())
    ),
    (proxy) => ({
      port: proxy.port,
      set: (faults, strikes) => proxy.set(faults, strikes),
      struck: () => proxy.struck,
      connections: () => proxy.clients.size,
      reset: () => proxy.reset()
    })
  )

class Proxy {
  readonly server: Server
  readonly clients = new Set<Socket>()
  readonly #sockets = new Set<Socket>()
  #faults: Faults = {}
  #strikes = Number.POSITIVE_INFINITY
  /** Counts how often it was told, so that bytes are counted anew. */
  told = 0
  struck = 0

  constructor(to: number) {
    this.server = createServer({ allowHalfOpen: true }, (client) => {
      const server = connect({ port: to, host: HOST, allowHalfOpen: true })
      this.clients.add(client)
      this.#keep(client)
      this.#keep(server)
      client.on("end", () => this.clients.delete(client))
      const [up, down] = [new Way(this, "up", client, server), new Way(this, "down", server, client)]
      up.back = down
      down.back = up
    })
  }

  get port(): number {
    const address = this.server.address()
    return typeof address === "object" && address !== null ? address.port : 0
  }

  set(faults: Faults = {}, strikes = Number.POSITIVE_INFINITY): void {
    this.#faults = faults
    this.#strikes = strikes
    this.told++
  }

  fault(direction: keyof Faults): Fault | undefined {
    return this.#faults[direction]
  }

  strike(): void {
    this.struck++
    if (--this.#strikes <= 0) this.set()
  }

  reset(): void {
    for (const socket of [...this.#sockets]) socket.resetAndDestroy()
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve())
      this.reset()
    })
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket.setNoDelay())
    socket.on("close", () => {
      this.#sockets.delete(socket)
      this.clients.delete(socket)
    })
    // It is followed by the end
    socket.on("error", () => {})
  }
}

/** One direction of one connection. */
class Way {
  readonly #proxy: Proxy
  readonly #direction: keyof Faults
  readonly #from: Socket
  readonly #to: Socket
  /** The other direction. */
  back: Way | undefined
  #isSwallowed = false
  /** Bytes that passed since the proxy was told last. */
  #passed = 0
  #told = 0
  /** What is held up, and what came after it: it arrives in order. */
  #held = Promise.resolve()
  #holding = 0

  constructor(proxy: Proxy, direction: keyof Faults, from: Socket, to: Socket) {
    this.#proxy = proxy
    this.#direction = direction
    this.#from = from
    this.#to = to
    from.on("data", (bytes: Buffer) => this.#take(bytes))
    from.on("end", () => this.#arrive(() => to.end()))
    to.on("drain", () => from.resume())
    // Whoever is gone without an end was reset, and so is the other
    from.on("close", () => {
      if (!this.#isSwallowed && !from.readableEnded) to.resetAndDestroy()
    })
  }

  #take(bytes: Buffer): void {
    if (this.#isSwallowed) return
    const fault = this.#proxy.fault(this.#direction)
    switch (fault?._tag) {
      case undefined:
      case "delay":
        return this.#pass(bytes)
      case "cut": {
        const left = fault.after - this.#since()
        if (bytes.length < left) return this.#pass(bytes)
        this.#proxy.strike()
        return void this.#to.write(bytes.subarray(0, Math.max(0, left)), () => this.#reset())
      }
      case "reset":
        this.#proxy.strike()
        return this.#reset()
      case "halfOpen":
        this.#proxy.strike()
        this.swallow()
        this.back?.swallow()
        return void this.#to.resetAndDestroy()
      case "blackHole":
        this.#proxy.strike()
        this.swallow()
    }
  }

  #since(): number {
    if (this.#told !== this.#proxy.told) this.#passed = 0
    this.#told = this.#proxy.told
    return this.#passed
  }

  #pass(bytes: Buffer): void {
    this.#passed = this.#since() + bytes.length
    this.#arrive(() => {
      if (!this.#to.write(bytes)) this.#from.pause()
    })
  }

  #arrive(happen: () => void): void {
    const fault = this.#proxy.fault(this.#direction)
    const millis = fault?._tag === "delay" ? fault.millis : 0
    if (millis === 0 && this.#holding === 0) return this.#unlessSwallowed(happen)
    this.#holding++
    const due = new Promise((resolve) => setTimeout(resolve, millis))
    this.#held = this.#held
      .then(() => due)
      .then(() => {
        this.#holding--
        this.#unlessSwallowed(happen)
      })
  }

  #unlessSwallowed(happen: () => void): void {
    if (!this.#isSwallowed) happen()
  }

  swallow(): void {
    this.#isSwallowed = true
  }

  #reset(): void {
    this.#from.resetAndDestroy()
    this.#to.resetAndDestroy()
  }
}
