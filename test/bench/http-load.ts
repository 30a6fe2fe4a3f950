/** Raw keep-alive connections that each send the next request when the last was answered: the least a client can cost. */
import { connect } from "node:net"
import { parentPort, workerData } from "node:worker_threads"

const { port, path, key, clients, millis } = workerData as { port: number; path: string; key: string; clients: number; millis: number }
const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n\r\n`
const until = performance.now() + millis
let answered = 0

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
      if (performance.now() < until) return void socket.write(request)
      socket.end()
      resolve()
    })
  })

const began = performance.now()
await Promise.all(Array.from({ length: clients }, client))
parentPort?.postMessage((answered / (performance.now() - began)) * 1000)
