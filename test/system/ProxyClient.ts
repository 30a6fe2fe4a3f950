/** Clients of a proxy node, what it announces, and a destination on loopback for them. */
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { Schema } from "effect"
import { SocksClient } from "socks"
import type { Change } from "./Changes.ts"
import { undoAfterwards } from "./Leftovers.ts"
import type { Process } from "./Server.ts"

/** Lets a proxy reach loopback, and nothing else. */
export const TO_LOOPBACK: Change = [
  "proxy/Destinations.ts",
  "isPublic(address) && !isOwn(address)",
  '(isPublic(address) && !isOwn(address)) !== (address === "127.0.0.1")'
]

/** A destination that answers with what it gets: its port. */
export const startEcho = async (): Promise<number> => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}))
    socket.pipe(socket)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  undoAfterwards(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

const Endpoint = Schema.Struct({ protocol: Schema.String, port: Schema.Int })
const Announced = Schema.fromJsonString(
  Schema.Struct({ proxy: Schema.Struct({ country: Schema.String, endpoints: Schema.Array(Endpoint) }) })
)

/** The node that a process says it serves: its country, and its ports. */
export const nodeOf = ({ stdout }: Process) => {
  const { country, endpoints } = Schema.decodeUnknownSync(Announced)(stdout.split("\n", 1)[0] ?? "").proxy
  const portOf = (protocol: string) => endpoints.find((endpoint) => endpoint.protocol === protocol)?.port ?? 0
  return { country, http: portOf("http"), socks: portOf("socks5h") }
}

/** What a caller gets. */
export const Session = Schema.Struct({
  username: Schema.String,
  password: Schema.String,
  country: Schema.String,
  port: Schema.Int,
  expires_at: Schema.String
})

type Login = Pick<typeof Session.Type, "username" | "password">

/** A tunnel by CONNECT: its socket, or the status of a refusal. */
export const byConnect = (port: number, { password, username }: Login, target: number): Promise<Socket | string> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1")
    const auth = Buffer.from(`${username}:${password}`).toString("base64")
    socket.write(`CONNECT 127.0.0.1:${target} HTTP/1.1\r\nHost: 127.0.0.1:${target}\r\nProxy-Authorization: Basic ${auth}\r\n\r\n`)
    socket.once("error", reject).once("data", (answer) => {
      const status = answer.toString().split(" ")[1] ?? ""
      socket.off("error", reject).on("error", () => {})
      if (status !== "200") socket.destroy()
      resolve(status === "200" ? socket : status)
    })
  })

/** A tunnel by SOCKS: its socket, or why there is none. */
export const bySocks = (port: number, { password, username }: Login, target: number): Promise<Socket | string> =>
  SocksClient.createConnection({
    proxy: { host: "127.0.0.1", port, type: 5, userId: username, password },
    command: "connect",
    destination: { host: "127.0.0.1", port: target }
  }).then(
    ({ socket }) => socket.on("error", () => {}),
    (error: Error) => error.message
  )

/** A tunnel that was opened. */
export const opened = (tunnel: Socket | string): Socket => {
  if (typeof tunnel === "string") throw new Error(`No tunnel was opened: ${tunnel}`)
  return tunnel
}

/** What comes back through a tunnel. */
export const echoed = async (tunnel: Socket, text: string): Promise<string> => {
  const next = once(tunnel, "data")
  tunnel.write(text)
  return String((await next)[0])
}
