/**
 * The load of a mail benchmark, in a thread of its own: connections that stay open and send one message after another, to the recipients in
 * turn. Posts mails a second.
 */
import { connect } from "node:net"
import { parentPort, workerData } from "node:worker_threads"

export interface Load {
  readonly port: number
  readonly connections: number
  readonly millis: number
  readonly sender: string
  readonly recipients: ReadonlyArray<string>
  readonly message: string
}

const { port, connections, millis, sender, recipients, message }: Load = workerData

let begun = 0
let sent = 0
let over = false

const begin = (): string => `MAIL FROM:<${sender}>\r\nRCPT TO:<${recipients[begun++ % recipients.length]}>\r\nDATA\r\n`

/** Sends messages until the time is over. Rejects on an answer that is not expected. */
const client = () =>
  new Promise<void>((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true })
    let rest = ""
    const answered = (answer: string) => {
      if (answer.startsWith("220 ")) socket.write("EHLO load.example.com\r\n")
      else if (answer.startsWith("354 ")) socket.write(`${message}.\r\n`)
      else if (/^250 (?:2\.6\.0 )?OK\b/u.test(answer) || /^250 (?:SIZE|SMTPUTF8)\b/u.test(answer)) {
        if (answer.includes("queued")) sent += 1
        if (!over) return socket.write(begin())
        socket.end()
        resolve()
      } else if (!answer.startsWith("250")) reject(new Error(answer))
      return undefined
    }
    socket.setEncoding("latin1").on("data", (text: string) => {
      const lines = (rest + text).split("\r\n")
      rest = lines.pop() ?? ""
      for (const answer of lines) answered(answer)
    })
    socket.once("error", reject)
  })

const start = performance.now()
setTimeout(() => {
  over = true
}, millis)
await Promise.all(Array.from({ length: connections }, client))
parentPort?.postMessage((sent * 1000) / (performance.now() - start))
