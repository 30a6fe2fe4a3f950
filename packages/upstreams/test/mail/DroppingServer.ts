/** An SMTP server on loopback that ends the connection at a step, or answers there as a test says. */
import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** `body`: after a part of the message. `dot`: after all of it, before an answer. `taken`: after the answer that it was taken. */
export const STEPS = ["greeting", "ehlo", "mail", "rcpt", "data", "body", "dot", "taken"] as const
export type Step = (typeof STEPS)[number]

export interface Script {
  readonly at: Step
  /** Instead of ending the connection: an answer such as `451 later`, or nothing at all. */
  readonly instead?: string | "silence"
}

export interface DroppingServer {
  readonly port: number
  /** The messages that came as a whole, whatever was answered. */
  readonly arrived: ReadonlyArray<string>
  /** Connections so far. */
  readonly connections: () => number
}

const ANSWERS: Readonly<Record<Step, string>> = {
  greeting: "220 relay.test ESMTP",
  ehlo: "250 relay.test",
  mail: "250 sender ok",
  rcpt: "250 recipient ok",
  data: "354 go ahead",
  body: "",
  dot: "250 taken",
  taken: ""
}

const stepOf = (line: string): Step | undefined =>
  (({ EHLO: "ehlo", MAIL: "mail", RCPT: "rcpt", DATA: "data" }) as const)[
    line.slice(0, 4).toUpperCase() as "EHLO" | "MAIL" | "RCPT" | "DATA"
  ]

const END = "\r\n.\r\n"

/** Speaks with one client. */
const speak = (socket: Socket, script: () => Script | undefined, arrived: Array<string>): void => {
  let text = ""
  let inMessage = false
  /** Whether the conversation goes on. */
  const answer = (step: Step): boolean => {
    const { at, instead } = script() ?? {}
    if (at !== step) {
      if (ANSWERS[step] !== "") socket.write(`${ANSWERS[step]}\r\n`)
      return true
    }
    if (instead === undefined) socket.destroy()
    else if (instead !== "silence") socket.write(`${instead}\r\n`)
    return instead !== undefined && instead !== "silence"
  }
  const takeMessage = (): boolean => {
    if (!answer("body")) return false
    const end = text.indexOf(END)
    if (end < 0) return false
    arrived.push(text.slice(0, end))
    text = text.slice(end + END.length)
    inMessage = false
    if (!answer("dot")) return false
    if (script()?.at === "taken") socket.end()
    return true
  }
  const takeLine = (): boolean => {
    const end = text.indexOf("\r\n")
    if (end < 0) return false
    const line = text.slice(0, end)
    text = text.slice(end + 2)
    const step = stepOf(line)
    if (step === undefined) socket.write("221 bye\r\n")
    else if (!answer(step)) return false
    inMessage = step === "data" && !(script()?.at === "data")
    return true
  }
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
    while (!socket.destroyed && (inMessage ? takeMessage() : takeLine()));
  })
  socket.on("error", () => undefined)
  answer("greeting")
}

/** Listens until the scope closes. The script is asked at each step. */
export const serve = (script: () => Script | undefined): Effect.Effect<DroppingServer, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const sockets = new Set<Socket>()
        const arrived: Array<string> = []
        let connections = 0
        const server = createServer((socket) => {
          connections++
          sockets.add(socket)
          speak(socket, script, arrived)
        })
        server.listen(0, "127.0.0.1")
        await once(server, "listening")
        return { server, sockets, arrived, connections: () => connections }
      }),
      ({ server, sockets }) =>
        Effect.promise(async () => {
          for (const socket of sockets) socket.destroy()
          server.close()
          await once(server, "close")
        })
    ),
    ({ arrived, connections, server }) => ({ port: (server.address() as AddressInfo).port, arrived, connections })
  )
