/** A connection on which a test sends bytes as they are, and reads the answers that come back. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"

export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** Milliseconds after which a test gives up on what never comes: longer than a grammar check takes on a busy machine. */
const FAILSAFE = 30_000

/** All whole answers in the bytes that a server sent. */
export const answersIn = (text: string): ReadonlyArray<RawAnswer> => {
  const answers: Array<RawAnswer> = []
  for (let rest = text; rest !== ""; ) {
    const end = rest.indexOf("\r\n\r\n")
    if (end === -1) break
    const head = rest.slice(0, end)
    const length = Number(/^content-length: (\d+)\r?$/imu.exec(head)?.[1] ?? 0)
    const body = rest.slice(end + 4, end + 4 + length)
    if (body.length < length) break
    answers.push({ status: Number(head.slice(9, 12)), head, body })
    rest = rest.slice(end + 4 + length)
  }
  return answers
}

/** The one header of an answer, if it has it. */
export const headerOf = ({ head }: RawAnswer, name: string): string | undefined => new RegExp(`^${name}: (.*?)\\r?$`, "imu").exec(head)?.[1]

export class RawSocket {
  readonly #socket: Socket
  #text = ""
  #changed = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on("data", (bytes) => {
      this.#text += bytes.toString("latin1")
      this.#changed()
    })
    // Servers may reset connections; what they answered before is what counts
    socket.on("error", () => {})
    socket.on("close", () => this.#changed())
  }

  static async open(port: number): Promise<RawSocket> {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
    await once(socket, "connect")
    return new RawSocket(socket)
  }

  get answers(): ReadonlyArray<RawAnswer> {
    return answersIn(this.#text)
  }

  /** Sends bytes, in latin1, and waits until the operating system has them; a closed connection takes them as well. */
  async write(bytes: string): Promise<void> {
    if (this.#socket.writable) await new Promise<void>((resolve) => this.#socket.write(bytes, "latin1", () => resolve()))
  }

  /** Says that no more bytes will come. */
  end(): void {
    this.#socket.end()
  }

  /** Stops reading. */
  pause(): void {
    this.#socket.pause()
  }

  /** Closes the connection as a program does that ends. */
  leave(): void {
    this.#socket.destroy()
  }

  /** Breaks the connection, so that the server sees an error. */
  reset(): void {
    this.#socket.resetAndDestroy()
  }

  /** Waits until the server has sent so many answers, or has closed the connection. */
  async answered(count: number): Promise<void> {
    const giveUpAt = performance.now() + FAILSAFE
    while (this.answers.length < count && !this.#socket.readableEnded && !this.#socket.destroyed) {
      if (performance.now() > giveUpAt) throw new Error(`${this.answers.length} answers of ${count}: ${this.#text.slice(0, 2_000)}`)
      await Promise.race([
        new Promise<void>((resolve) => {
          this.#changed = resolve
          this.#socket.once("end", resolve)
        }),
        new Promise<void>((resolve) => setTimeout(resolve, 1_000).unref())
      ])
    }
  }
}
