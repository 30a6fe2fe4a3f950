/** Raw keep-alive connections that each send the next request when the last was answered: the least a client can cost. */
import { connect } from "node:net"
import { parentPort, workerData } from "node:worker_threads"

const { port, path, key, clients, millis, requests } = workerData as Readonly<Record<"port" | "clients", number>> &
  Readonly<Record<"path" | "key", string>> & { readonly millis?: number; readonly requests?: number }
const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n\r\n`
const began = performance.now()
let sent = clients
let answered = 0

/** Whether there is time for another request, or one is left. */
const goesOn = () => (requests === undefined ? performance.now() - began < (millis ?? 0) : sent++ < requests)

const client = () =>
  new Promise<void>((resolve, reject) => {
    const socket = connect(port, "127.0.0.1")
    let received = ""
    socket.setEncoding("latin1")
    socket.setNoDelay(true)
    socket.once("connect", () => socket.write(request))
    socket.once("error", reject)
    socket.on("data", (text: string) => {
      received += text
      const head = received.indexOf("\r\n\r\n")
      if (head < 0) return
      const length = /^content-length: *(\d+)/imu.exec(received.slice(0, head))?.[1]
      const isWhole = length === undefined ? received.endsWith("0\r\n\r\n") : received.length >= head + 4 + Number(length)
      if (!isWhole) return
      if (!received.startsWith("HTTP/1.1 200")) return reject(new Error(received))
      received = ""
      answered++
      if (goesOn()) return void socket.write(request)
      socket.end()
      resolve()
    })
  })

await Promise.all(Array.from({ length: clients }, client))
parentPort?.postMessage(requests === undefined ? (answered / (performance.now() - began)) * 1000 : answered)
