/**
 * Messages over a socket, in frames: the length in four bytes, then a JSON array of messages. All messages of one turn of the event loop
 * share a frame, so that a busy link costs little for each. A socket that has been silent for three seconds counts as broken.
 */
import type { Socket } from "node:net"
import type { Message } from "./Message.ts"

/** Bytes of a frame's length. */
const HEADER = 4
/** The longest frame in bytes: more than the longest reply. */
const LONGEST_FRAME = 256 * 1024 * 1024
/** A frame takes no further messages after this many characters. */
const FULL_FRAME = 1024 * 1024
/** Bytes that wait to be sent, from which on the channel is congested. */
const CONGESTED = 16 * 1024 * 1024
/** Milliseconds between two looks at the silence of a socket. */
const TICK = 500
/** Ticks without a byte after which a socket counts as broken. Ticks of this process, so that one that was suspended breaks no link. */
const SILENT_TICKS = 6

export interface Listener {
  readonly onMessage: (message: Message) => void
  /** Called once, also after `close`. */
  readonly onClose: () => void
  /** Called every half second while the channel is open. */
  readonly onTick?: () => void
}

export class Channel {
  readonly #socket: Socket
  readonly #listener: Listener
  readonly #ticking: NodeJS.Timeout
  #isClosed = false
  #outgoing: Array<readonly [text: string, onSent: (() => void) | undefined]> = []
  #incoming: Array<Buffer> = []
  #received = 0
  #silentTicks = 0
  #hasSent = false

  /** Takes over a socket that is connected. */
  constructor(socket: Socket, listener: Listener) {
    this.#socket = socket
    this.#listener = listener
    socket.setNoDelay(true)
    socket.on("data", (bytes: Buffer) => this.#receive(bytes))
    socket.once("end", () => this.close())
    socket.once("close", () => this.close())
    socket.on("error", () => this.close())
    this.#ticking = setInterval(() => this.#tick(), TICK)
    this.#ticking.unref()
  }

  /** Whether too much waits to be sent already. */
  get isCongested(): boolean {
    return this.#socket.writableLength > CONGESTED
  }

  /** Sends a message, given as its JSON. `onSent`: told when it is handed to the socket; never, if the channel closes before. */
  send(text: string, onSent?: () => void): void {
    if (this.#isClosed) return
    if (this.#outgoing.push([text, onSent]) === 1) setImmediate(() => this.#flush())
  }

  say(message: Message): void {
    this.send(JSON.stringify(message))
  }

  /** Sends what waits, then ends the socket. */
  end(): void {
    this.#flush()
    this.#socket.end()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#ticking)
    this.#socket.destroy()
    this.#listener.onClose()
  }

  #flush(): void {
    const messages = this.#outgoing
    this.#outgoing = []
    if (this.#isClosed) return
    let frame = ""
    for (const [text, onSent] of messages) {
      frame += frame === "" ? `[${text}` : `,${text}`
      onSent?.()
      if (frame.length < FULL_FRAME) continue
      this.#write(frame)
      frame = ""
    }
    if (frame !== "") this.#write(frame)
  }

  #write(frame: string): void {
    const text = `${frame}]`
    const bytes = Buffer.allocUnsafe(HEADER + Buffer.byteLength(text))
    bytes.writeUInt32BE(bytes.length - HEADER)
    bytes.write(text, HEADER)
    this.#hasSent = true
    this.#socket.write(bytes)
  }

  #receive(bytes: Buffer): void {
    this.#silentTicks = 0
    this.#incoming.push(bytes)
    this.#received += bytes.length
    for (;;) {
      const length = this.#lengthOfNext()
      if (length > LONGEST_FRAME) return this.close()
      if (this.#received < HEADER + length || this.#isClosed) return
      const all = this.#joined()
      this.#incoming = [all.subarray(HEADER + length)]
      this.#received = all.length - HEADER - length
      this.#hear(all.toString("utf8", HEADER, HEADER + length))
    }
  }

  /** The length of the frame whose beginning was received; none is shorter than what an unfinished header says. */
  #lengthOfNext(): number {
    if (this.#received < HEADER) return 0
    const [first] = this.#incoming
    return first !== undefined && first.length >= HEADER ? first.readUInt32BE() : this.#joined().readUInt32BE()
  }

  #joined(): Buffer {
    const [first] = this.#incoming
    if (this.#incoming.length === 1 && first !== undefined) return first
    const all = Buffer.concat(this.#incoming)
    this.#incoming = [all]
    return all
  }

  /** The other side showed that it has our secret, so its messages have the form of this version. */
  #hear(frame: string): void {
    let messages: ReadonlyArray<Message>
    try {
      messages = JSON.parse(frame)
    } catch {
      return this.close()
    }
    for (const message of messages) {
      if (this.#isClosed) return
      this.#listener.onMessage(message)
    }
  }

  #tick(): void {
    if (++this.#silentTicks >= SILENT_TICKS) return this.close()
    if (!this.#hasSent) this.say(["alive"])
    this.#hasSent = false
    this.#listener.onTick?.()
  }
}
