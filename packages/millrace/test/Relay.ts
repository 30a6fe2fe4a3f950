/** A mail relay of a test on loopback: EHLO, STARTTLS with a certificate of its own, and AUTH PLAIN with one name and password. */
import { createServer, type Socket } from "node:net"
import { createSecureContext, TLSSocket } from "node:tls"
import { Effect } from "effect"
import type { SelfSigned } from "../../upstreams/test/mail/SelfSigned.ts"

export interface Options {
  /** Without one, it offers no TLS. */
  readonly tls?: SelfSigned
  /** What it knows: `\0name\0password`. */
  readonly credentials?: string
}

export interface Relay {
  readonly port: number
  /** The commands that came, without their arguments. */
  readonly commands: Array<string>
}

/** Answers the lines of one connection, and again those after STARTTLS. */
const converse = (socket: Socket, { credentials, tls }: Options, commands: Array<string>): void => {
  const isSecure = socket instanceof TLSSocket
  const extensions = [...(tls !== undefined && !isSecure ? ["STARTTLS"] : []), ...(credentials === undefined ? [] : ["AUTH PLAIN"])]
  const answers: Readonly<Record<string, (line: string) => string>> = {
    EHLO: () => ["relay.example.com", ...extensions].map((text, i) => `250${i === extensions.length ? " " : "-"}${text}`).join("\r\n"),
    AUTH: (line) => (Buffer.from(line.split(" ")[2] ?? "", "base64").toString() === credentials ? "235 welcome" : "535 no"),
    QUIT: () => "221 bye"
  }
  const listen = (chunk: Buffer): void => {
    for (const line of chunk.toString().trim().split("\r\n")) {
      const command = line.split(" ", 1)[0]?.toUpperCase() ?? ""
      commands.push(command)
      if (command === "STARTTLS" && tls !== undefined && !isSecure) {
        socket.off("data", listen)
        socket.write("220 go\r\n", () =>
          converse(
            new TLSSocket(socket, { isServer: true, secureContext: createSecureContext(tls) }),
            { credentials: credentials ?? "", tls },
            commands
          )
        )
        return
      }
      socket.write(`${answers[command]?.(line) ?? "502 not here"}\r\n`)
    }
  }
  socket.on("data", listen)
  // A client that does not trust the certificate leaves
  socket.on("error", () => socket.destroy())
}

/** Listens until the scope closes. */
export const listen = (options: Options = {}) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const commands: Array<string> = []
      const sockets = new Set<Socket>()
      const server = createServer((socket) => {
        sockets.add(socket)
        socket.write("220 relay.example.com\r\n")
        converse(socket, options, commands)
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address = server.address()
      return { port: typeof address === "object" ? (address?.port ?? 0) : 0, commands, server, sockets }
    }),
    ({ server, sockets }) =>
      Effect.promise(() => {
        for (const socket of sockets) socket.destroy()
        return new Promise((resolve) => server.close(resolve))
      })
  )
