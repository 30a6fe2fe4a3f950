/** A client of SMTP that writes bytes as a test tells it, and reads answers line by line. */
import { connect, type Socket } from "node:net"
import { Effect, Queue } from "effect"

export interface Client {
  readonly socket: Socket
  readonly write: (bytes: string | Uint8Array) => Effect.Effect<void>
  /** The next answer: the lines of one code, joined. The text `end` once the server ended the connection. */
  readonly answer: Effect.Effect<string>
  /** Writes a line and waits for its answer. */
  readonly ask: (line: string) => Effect.Effect<string>
  /** Waits until the connection is closed. */
  readonly closed: Effect.Effect<void>
}

/** Connects until the scope closes. The greeting is the first answer. */
export const open = (port: number) =>
  Effect.gen(function* () {
    const answers = yield* Queue.unbounded<string>()
    const socket = yield* Effect.acquireRelease(
      Effect.sync(() => connect({ port, host: "127.0.0.1", allowHalfOpen: true })),
      (socket) => Effect.sync(() => socket.destroy())
    )
    let rest = ""
    let lines: Array<string> = []
    socket.setEncoding("latin1").on("data", (text: string) => {
      const parts = (rest + text).split("\r\n")
      rest = parts.pop() ?? ""
      for (const line of parts) {
        lines.push(line)
        if (line[3] === "-") continue
        Queue.offerUnsafe(answers, lines.join("\n"))
        lines = []
      }
    })
    socket.on("error", () => undefined)
    socket.once("end", () => Queue.offerUnsafe(answers, "end"))
    socket.once("close", () => Queue.offerUnsafe(answers, "end"))
    const answer = Queue.take(answers)
    const write = (bytes: string | Uint8Array) => Effect.sync(() => void socket.write(bytes))
    return {
      socket,
      write,
      answer,
      ask: (line) => Effect.andThen(write(`${line}\r\n`), answer),
      closed: Effect.callback<void>((resume) => {
        if (socket.closed) return resume(Effect.void)
        socket.once("close", () => resume(Effect.void))
      })
    } satisfies Client
  })

/** Connects and takes the greeting and the answer to EHLO. */
export const greeted = (port: number) => Effect.tap(open(port), (client) => Effect.andThen(client.answer, client.ask("EHLO client.test")))

/** Asks each in order, and gives the answers' codes. */
export const codes = (client: Client, lines: ReadonlyArray<string>) =>
  Effect.forEach(lines, (line) => Effect.map(client.ask(line), (answer) => answer.slice(0, 3)))
