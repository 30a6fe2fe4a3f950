/**
 * Stands in for a pooler in transaction mode, such as PgBouncer. It gives every transaction another backend, and runs `DISCARD ALL` on the
 * backend afterwards. So session state (named statements, settings, locks, LISTEN) is lost. It asks for no password, and does not
 * support COPY or cancelling.
 */
import { createServer, Socket } from "node:net"
import { Effect } from "effect"
import pg from "pg"

const message = (type: string, ...parts: ReadonlyArray<Buffer>): Buffer => {
  const body = Buffer.concat(parts)
  const head = Buffer.alloc(5)
  head.write(type, 0, "latin1")
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const int = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

const READY = message("Z", Buffer.from("I"))
const WELCOME = Buffer.concat([
  message("R", int(0)),
  message("S", Buffer.from("server_version\x0018.0\0")),
  message("K", int(1), int(1)),
  READY
])
const DISCARD = message("Q", Buffer.from("DISCARD ALL\0"))

/** Splits a stream of bytes into messages; the first message of a client has no type. */
const framed = (onMessage: (type: string, bytes: Buffer) => void, hasStartup: boolean) => {
  let pending = Buffer.alloc(0)
  let isStartup = hasStartup
  return (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes])
    for (;;) {
      const head = isStartup ? 0 : 1
      if (pending.length < head + 4) return
      const length = head + pending.readInt32BE(head)
      if (pending.length < length) return
      const whole = pending.subarray(0, length)
      pending = pending.subarray(length)
      const type = isStartup ? "startup" : String.fromCharCode(whole[0] ?? 0)
      isStartup = false
      onMessage(type, whole)
    }
  }
}

/** A connection of the pooler to the server: authenticated by `pg`, then used for raw bytes. */
const backend = async (url: string) => {
  const socket = new Socket()
  socket.setNoDelay()
  const client = new pg.Client({ connectionString: url, stream: () => socket })
  client.on("error", () => {})
  await client.connect()
  socket.removeAllListeners("data")
  let listener: (type: string, bytes: Buffer) => void = () => {}
  socket.on(
    "data",
    framed((type, bytes) => listener(type, bytes), false)
  )
  return {
    socket,
    hear: (next: (type: string, bytes: Buffer) => void) => {
      listener = next
    }
  }
}

type Backend = Awaited<ReturnType<typeof backend>>

export interface TransactionPooler {
  readonly port: number
  /** The number of transactions so far. */
  readonly transactions: () => number
}

/** A pooler with `size` connections to the server, closed with the scope. */
export const transactionPooler = (url: string, size: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const idle: Array<Backend> = []
      for (let i = 0; i < size; i++) idle.push(await backend(url))
      const all = [...idle]
      const waiting: Array<(free: Backend) => void> = []
      const clients = new Set<Socket>()
      let transactions = 0

      const give = (free: Backend) => {
        const next = waiting.shift()
        if (next === undefined) idle.push(free)
        else next(free)
      }
      /** The backend that was idle longest, so rarely the client's previous one. */
      const take = (use: (free: Backend) => void) => {
        const free = idle.shift()
        if (free === undefined) waiting.push(use)
        else use(free)
      }
      const clean = (used: Backend) => {
        used.hear((type) => {
          if (type === "Z") give(used)
        })
        used.socket.write(DISCARD)
      }

      const server = createServer((client) => {
        clients.add(client)
        client.setNoDelay()
        let mine: Backend | undefined
        let isAsking = false
        let outbox: Array<Buffer> = []
        const flush = () => {
          if (mine !== undefined) {
            for (const bytes of outbox) mine.socket.write(bytes)
            outbox = []
          } else if (!isAsking && outbox.length > 0) {
            isAsking = true
            take((free) => {
              isAsking = false
              mine = free
              transactions++
              free.hear((type, bytes) => {
                client.write(bytes)
                // Idle means outside of any transaction, so the client releases the backend
                if (type !== "Z" || bytes[5] !== "I".charCodeAt(0)) return
                mine = undefined
                clean(free)
                flush()
              })
              flush()
            })
          }
        }
        client.on(
          "data",
          framed((type, bytes) => {
            if (type === "startup") client.write(WELCOME)
            else if (type === "X") client.end()
            else {
              outbox.push(bytes)
              flush()
            }
          }, true)
        )
        client.on("error", () => {})
        client.on("close", () => {
          clients.delete(client)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address = server.address()
      return {
        port: address !== null && typeof address === "object" ? address.port : 0,
        transactions: () => transactions,
        close: () => {
          server.close()
          for (const client of clients) client.destroy()
          for (const { socket } of all) socket.destroy()
        }
      } satisfies TransactionPooler & { readonly close: () => void }
    }),
    (pooler) => Effect.sync(() => pooler.close())
  )
