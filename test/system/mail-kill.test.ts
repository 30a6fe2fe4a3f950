/**
 * The host that receives mail, killed between the end of DATA and its answer, again and again. Its clients are mail servers: what was not
 * acknowledged they send again, byte for byte, until it is.
 */
import { hash } from "node:crypto"
import { expect, test } from "vitest"
import { type Change, changed } from "./Changes.ts"
import { asking, DOMAIN, INBOXES, Messages, SmtpClient } from "./Mail.ts"
import { randomOf } from "./Random.ts"
import { auditOf, type Event, newStore, openAccount, readLog, type Server, serve, UNLIMITED } from "./Server.ts"

const SEED = 20_261_122
const CONNECTIONS = 6
const MESSAGES = 60

/** A message in the queue of a mail server. */
interface Queued {
  readonly name: string
  readonly address: string
  /** Attempts whose end of DATA was sent, and whose answer never came. */
  cut: number
  /** The queue ids under which it was acknowledged. */
  readonly acknowledged: Array<string>
}

/** Sends what is left of a queue over one connection, until it is empty or the host is gone. */
const drain = async (server: Server, queue: Array<Queued>, ended: () => void): Promise<void> => {
  const client = await SmtpClient.open(server)
  for (let message = queue.shift(); message !== undefined; message = queue.shift()) {
    const begun = await client.begin(message.address)
    if (begun === "354") {
      const { name } = message
      client.write(`From: shop@example.org\r\nMessage-ID: <${name}@example.org>\r\nSubject: ${name}\r\n\r\nNumber ${name}\r\n.\r\n`)
      ended()
      const answer = await client.answer()
      const queueId = /^250 .*queued as (?<id>\w+)$/u.exec(answer ?? "")?.groups?.["id"]
      if (queueId !== undefined) message.acknowledged.push(queueId)
      else if (answer === undefined) message.cut++
      else throw new Error(answer)
    } else if (begun !== undefined) throw new Error(begun)
    // As a mail server does: at the next attempt
    if (message.acknowledged.length === 0) queue.push(message)
    if (client.socket.closed) return
  }
  await client.close()
}

/** The id of a message of an inbox, as its server derives it. */
const messageIdOf = (queueId: string, addressHash: unknown): string =>
  `msg_${hash("sha256", JSON.stringify([queueId, addressHash]), "hex").slice(0, 26)}`

const receivedIn = async (url: string) => (await readLog(url)).filter(({ type }) => type === "MessageReceived")

const MAILROOM = "inboxes/Mailroom.ts"
const KEPT = "const message = { messageId, addressHash, size, ...kept }"
const WRITTEN = "// Another delivery under this queue id was first"

/** Ends the process when it comes to a place for the given time, as a power cut does. */
const dies = (place: string, time: number): ReadonlyArray<Change> => [
  [MAILROOM, place, `${place}\n;(globalThis.passed = (globalThis.passed ?? 0) + 1) === ${time} && process.kill(process.pid, "SIGKILL")\n`]
]

/** Deaths within the receiver: when the message is stored but named by no event, and when it is durable but not acknowledged. */
const DEATHS: ReadonlyArray<ReadonlyArray<Change>> = [dies(KEPT, 4), dies(WRITTEN, 3), [], dies(WRITTEN, 9), dies(KEPT, 1), []]

test("after kills between DATA and its answer, each acknowledged message is there, and no message is there twice", {
  timeout: 180_000
}, async () => {
  const random = randomOf(SEED)
  const { url } = newStore()
  const { key } = await openAccount(url, 100)
  const args = ["--store", url, "--mail-domain", DOMAIN, "--smtp", "127.0.0.1:0", "--dns-servers", "127.0.0.1:1"]
  const messages: Array<Queued> = []
  const inboxes: Array<string> = []
  let kills = 0
  let cutOff = 0
  let inDoubt = 0

  /** One life of the host: it ends by itself, or when so many messages more have been sent. */
  const live = async (death: ReadonlyArray<Change>) => {
    const server = await serve(args, death.length === 0 ? { env: UNLIMITED } : changed(death, { env: UNLIMITED }))
    const { address, inbox_id } = await asking(server, key).create()
    inboxes.push(inbox_id)
    for (let i = 0; i < MESSAGES / DEATHS.length; i++) messages.push({ name: `${inboxes.length}-${i}`, address, cut: 0, acknowledged: [] })
    const queue = messages.filter(({ acknowledged }) => acknowledged.length === 0)
    let left = death.length === 0 ? 1 + Math.floor(random() * 8) : Number.POSITIVE_INFINITY
    const before = messages.reduce((sum, { cut }) => sum + cut, 0)
    const drained = Array.from({ length: CONNECTIONS }, () => drain(server, queue, () => --left === 0 && void server.kill()))
    await Promise.all(drained)
    await server.ended
    kills++
    if (messages.reduce((sum, { cut }) => sum + cut, 0) > before) cutOff++
    // Durable, while its sender does not know
    const acknowledged = messages.filter((message) => message.acknowledged.length > 0)
    if ((await receivedIn(url)).length > acknowledged.length) inDoubt++
  }
  for (const death of DEATHS) await live(death)

  const last = await serve(args, { env: UNLIMITED })
  await drain(
    last,
    messages.filter(({ acknowledged }) => acknowledged.length === 0),
    () => {}
  )
  expect([kills, cutOff]).toEqual([DEATHS.length, DEATHS.length])
  expect(messages.filter(({ acknowledged }) => acknowledged.length !== 1)).toEqual([])

  const received = await receivedIn(url)
  const idsOf = ({ data }: Event) => data["messageId"]
  // What was acknowledged is there, once
  const hashes = new Set(received.map(({ data }) => data["addressHash"]))
  for (const { acknowledged } of messages) {
    const ids = acknowledged.flatMap((queueId) => [...hashes].map((addressHash) => messageIdOf(queueId, addressHash)))
    expect(received.filter((event) => ids.includes(String(idsOf(event))))).toHaveLength(1)
  }
  expect(new Set(received.map(idsOf)).size).toBe(received.length)
  // All of it can be read
  const listed: Array<string | null> = []
  for (const inbox of inboxes) {
    const { get, send } = asking(last, key)
    const { messages } = await get(Messages, `${INBOXES}/${inbox}/messages?per_page=100`)
    for (const { message_id, subject } of messages) {
      listed.push(subject)
      expect((await send(`${INBOXES}/${inbox}/messages/${message_id}/raw`)).body).toContain(`Number ${subject}\r\n`)
    }
  }
  // What was brought again after a kill is the same message
  expect(listed.toSorted()).toEqual(messages.map(({ name }) => name).toSorted())
  expect(received).toHaveLength(messages.length)
  expect(inDoubt).toBeGreaterThan(0)
  expect((await last.stop()).code).toBe(0)
  expect(await auditOf(url)).toMatchObject({ ok: true, problems: [] })
})
