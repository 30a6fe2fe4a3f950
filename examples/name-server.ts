/** A name server for offline trials: every name that ends in `.mill` has an address and receives mail. */
import { createSocket } from "node:dgram"
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode } from "dns-packet"

/** A delay like that of a distant server. Milliseconds. */
const DISTANCE = 300
const NO_SUCH_NAME = 3

const recordsOf = (name: string): ReadonlyArray<Answer> => [
  { name, ttl: 60, type: "A", data: "192.0.2.25" },
  { name, ttl: 60, type: "MX", data: { preference: 10, exchange: `mail.${name}` } },
  { name, ttl: 60, type: "NS", data: "ns.mill" },
  { name, ttl: 60, type: "TXT", data: "v=spf1 mx -all" }
]

const server = createSocket("udp4")
server.on("message", (message, { address, port }) => {
  const { id, questions = [] } = decode(message)
  const [{ name, type } = { name: "", type: "A" }] = questions
  const isOurs = /(?:^|\.)mill$/iu.test(name)
  const answers = isOurs ? recordsOf(name).filter((record) => record.type === type) : []
  const flags = AUTHORITATIVE_ANSWER | (isOurs ? 0 : NO_SUCH_NAME)
  setTimeout(() => server.send(encode({ type: "response", id, flags, questions, answers }), port, address), DISTANCE)
})
server.bind(Number(process.env["PORT"] ?? 5533), "127.0.0.1", () => console.log(`Names are served on 127.0.0.1:${server.address().port}`))
