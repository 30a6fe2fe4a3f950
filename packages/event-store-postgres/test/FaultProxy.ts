/** A way to a server that fails as networks do: connections through it are cut, or fall silent, before or after a statement arrives. */
import { connect, createServer, type Socket } from "node:net"
import { Effect } from "effect"

export type Fault =
  /** What the client sends next does not arrive, and the connection is reset. */
  | "cutBefore"
  /** What the client sends next arrives; its answer does not, and the connection is reset. */
  | "cutAfter"
  /** What the client sends next does not arrive, nor does anything else, and nobody is told. */
  | "silentBefore"
  /** What the client sends next arrives; its answer does not, nor does anything else, and nobody is told. */
  | "silentAfter"

export interface FaultProxy {
  readonly port: number
  /** From now on, whatever is sent on any connection meets this; `undefined` lets all pass. */
  readonly set: (fault: Fault | undefined) => void
  /** How often a fault has struck. */
  readonly struck: () => number
  /** Resets all connections at once. */
  readonly cut: () => void
}

/** A proxy to a port of the loopback, closed with the scope. */
export const faultProxy = (to: number) =>
  Effect.acquireRelease(
    Effect.callback<FaultProxy & { readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      let fault: Fault | undefined
      let struck = 0
      const server = createServer((client) => {
        const upstream = connect(to, "127.0.0.1")
        client.setNoDelay()
        upstream.setNoDelay()
        let isSilent = false
        /** Passed on already, so that its answer is what fails. */
        let isAnswerLost = false
        const reset = () => {
          client.resetAndDestroy()
          upstream.resetAndDestroy()
        }
        client.on("data", (bytes) => {
          if (isSilent) return
          if (fault !== undefined) {
            struck++
            if (fault === "cutBefore") return reset()
            if (fault === "silentBefore") {
              isSilent = true
              return
            }
            isAnswerLost = true
          }
          upstream.write(bytes)
        })
        upstream.on("data", (bytes) => {
          if (isSilent) return
          if (!isAnswerLost) client.write(bytes)
          else if (fault === "silentAfter") isSilent = true
          else reset()
        })
        for (const [one, other] of [
          [client, upstream],
          [upstream, client]
        ] as const) {
          sockets.add(one)
          one.on("error", () => other.destroy())
          one.on("close", () => {
            sockets.delete(one)
            // A half that fell silent says nothing of its end either
            if (!isSilent || one === client) other.destroy()
          })
        }
      })
      const cut = () => {
        for (const socket of [...sockets]) socket.resetAndDestroy()
      }
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = address !== null && typeof address === "object" ? address.port : 0
        resume(
          Effect.succeed({
            port,
            set: (next) => {
              fault = next
            },
            struck: () => struck,
            cut,
            close: () => {
              server.close()
              cut()
            }
          })
        )
      })
    }),
    (proxy) => Effect.sync(() => proxy.close())
  )
