/**
 * A TCP proxy with network faults, in front of a server on this machine. Connections are real; bytes are delayed, cut off or dropped in
 * either direction, and the faults can change while connections are open. It listens on the loopback interface only, and closes with its
 * scope.
 */
import { connect, createServer, type Server, type Socket } from "node:net"
import { Effect, Schema, type Scope } from "effect"

/**
 * What happens to bytes:
 * - `delay`: they arrive `millis` later, in order
 * - `reset`: they are dropped, and both ends see a connection reset
 * - `cut`: `after` more bytes of each connection arrive; then as `reset`
 * - `halfOpen`: they are dropped; the receiver sees a connection reset, and the sender gets nothing any more
 * - `blackHole`: they and all that follows are dropped, the end of the connection included, and neither end notices
 *
 * A connection that has lost bytes stays reset, half-open or a black hole, also when other faults are set later.
 */
export type Fault =
  | { readonly _tag: "delay"; readonly millis: number }
  | { readonly _tag: "reset" }
  | { readonly _tag: "cut"; readonly after: number }
  | { readonly _tag: "halfOpen" }
  | { readonly _tag: "blackHole" }

/** `up`: bytes from clients to the server. `down`: bytes from the server to clients. */
export interface Faults {
  readonly up?: Fault
  readonly down?: Fault
}

export interface FaultProxy {
  readonly port: number
  /**
   * Sets the faults of all connections, new ones included; none by default. After so many strikes there are no faults any more. A delay is
   * not a strike.
   */
  readonly set: (faults?: Faults, strikes?: number) => void
  /** How many connections were reset, cut, half-opened or dropped so far. */
  readonly struck: () => number
  /** Connections that clients hold open now, including dead ones. */
  readonly connections: () => number
  /** Resets all connections now. */
  readonly reset: () => void
}

export class NotListening extends Schema.TaggedError<NotListening>()("NotListening", { reason: Schema.String }) {
  override get message(): string {
    return `The proxy cannot listen: ${this.reason}`
  }
}

const HOST = "127.0.0.1"

/** A proxy on a free port in front of this port of the loopback interface. Fails if it cannot listen. */
export const make = (to: number): Effect.Effect<FaultProxy, NotListening, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Proxy, NotListening>((resume) => {
      const proxy = new Proxy(to)
      proxy.server.once("error", (error) => resume(Effect.fail(new NotListening({ reason: error.message }))))
      proxy.server.listen(0, HOST, () => resume(Effect.succeed(proxy)))
    }),
    (proxy) => Effect.promise(() => proxy.close())
  )

class Proxy implements FaultProxy {
  readonly server: Server
  readonly #clients = new Set<Socket>()
  readonly #sockets = new Set<Socket>()
  #faults: Faults = {}
  #strikes = Number.POSITIVE_INFINITY
  /** Counts the calls of {@link set}, so that bytes are counted anew after each. */
  generation = 0
  #struck = 0

  constructor(to: number) {
    this.server = createServer({ allowHalfOpen: true }, (client) => {
      const server = connect({ port: to, host: HOST, allowHalfOpen: true })
      this.#clients.add(client)
      this.#keep(client)
      this.#keep(server)
      client.on("end", () => this.#clients.delete(client))
      const [up, down] = [new Direction(this, "up", client, server), new Direction(this, "down", server, client)]
      up.opposite = down
      down.opposite = up
    })
  }

  get port(): number {
    const address = this.server.address()
    return typeof address === "object" && address !== null ? address.port : 0
  }

  set(faults: Faults = {}, strikes = Number.POSITIVE_INFINITY): void {
    this.#faults = faults
    this.#strikes = strikes
    this.generation++
  }

  struck(): number {
    return this.#struck
  }

  connections(): number {
    return this.#clients.size
  }

  fault(direction: keyof Faults): Fault | undefined {
    return this.#faults[direction]
  }

  strike(): void {
    this.#struck++
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
      this.#clients.delete(socket)
    })
    // A close event follows
    socket.on("error", () => {})
  }
}

/** One direction of one connection. */
class Direction {
  readonly #proxy: Proxy
  readonly #direction: keyof Faults
  readonly #from: Socket
  readonly #to: Socket
  /** The other direction. */
  opposite: Direction | undefined
  #isDropped = false
  /** Bytes that passed since the faults were set last. */
  #passed = 0
  #generation = 0
  /** Delayed bytes, and those after them: they arrive in order. */
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
    // An end that closes without a FIN was reset; the other end is reset as well
    from.on("close", () => {
      if (!this.#isDropped && !from.readableEnded) to.resetAndDestroy()
    })
  }

  #take(bytes: Buffer): void {
    if (this.#isDropped) return
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
        this.drop()
        this.opposite?.drop()
        return void this.#to.resetAndDestroy()
      case "blackHole":
        this.#proxy.strike()
        this.drop()
    }
  }

  #since(): number {
    if (this.#generation !== this.#proxy.generation) this.#passed = 0
    this.#generation = this.#proxy.generation
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
    if (millis === 0 && this.#holding === 0) return this.#unlessDropped(happen)
    this.#holding++
    const due = new Promise((resolve) => setTimeout(resolve, millis))
    this.#held = this.#held
      .then(() => due)
      .then(() => {
        this.#holding--
        this.#unlessDropped(happen)
      })
  }

  #unlessDropped(happen: () => void): void {
    if (!this.#isDropped) happen()
  }

  drop(): void {
    this.#isDropped = true
  }

  #reset(): void {
    this.#from.resetAndDestroy()
    this.#to.resetAndDestroy()
  }
}
