/** The rows of temporary mail once more: whose inboxes they are, what they answer, how long they wait, and where no mail comes. */
import { Effect, Fiber } from "effect"
import { describe, expect, test } from "vitest"
import { host, hostWith, testing } from "./Host.ts"
import type { Answer } from "./Requests.ts"
import * as Requests from "./Requests.ts"
import type { Row } from "./Row.ts"
import { rows } from "./Rows.ts"

const CREDITS = 1_000
/** An id that no inbox has. */
const NEVER = "inbox_01M7ZQTERXJYEB32AVSJ0C2T39"

const ofInboxes = rows.filter(({ key }) => key.startsWith("inbox."))
const ofOne = ofInboxes.filter(({ parameters }) => "inbox" in parameters.path)

const rowOf = (key: string): Row => {
  const row = ofInboxes.find((row) => row.key === key)
  if (row === undefined) throw new Error(`There is no row ${key}`)
  return row
}

const send = (url: string, row: Row, key: string, input: object) =>
  Effect.promise(() => Requests.send(url, row, { ...("attachment" in row.parameters.path ? { attachment: "1" } : {}), ...input }, key))

const told = ({ body, headers, status }: Answer) => [status, JSON.parse(body).error.code, headers.has("x-credits-charged")]

/** What two answers must not differ in, if nobody is to tell one from the other. */
const anonymous = ({ body, headers, status }: Answer) => ({
  status,
  body: body.replace(/"request_id":"[^"]*"/u, ""),
  headers: [...headers.keys()].sort()
})

/** The parts of an input that a row's path has. */
const within = ({ parameters }: Row, input: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(input).filter(([name]) => name in parameters.path))

test("the rows are the six of the specification and two for bytes", () => {
  expect(ofInboxes).toHaveLength(8)
})

describe.each(ofOne)("$method $path", (row) => {
  testing(
    "answers alike for an unknown and a foreign inbox, and one that was deleted",
    Effect.gen(function* () {
      const { balance, inbox, open, url } = yield* host
      const [own, other] = [yield* open(CREDITS), yield* open(CREDITS)]
      const { inboxId, messages } = yield* inbox(own.accountId)
      const of = (inbox: string) => within(row, { inbox, message: messages[0] })
      const never = yield* send(url, row, own.key, of(NEVER))
      expect(told(never)).toEqual([404, "not_found", false])
      expect(anonymous(yield* send(url, row, other.key, of(inboxId)))).toEqual(anonymous(never))
      expect((yield* send(url, row, own.key, of(inboxId))).status).toBe(200)
      yield* send(url, rowOf("inbox.delete"), own.key, { inbox: inboxId })
      expect(anonymous(yield* send(url, row, own.key, of(inboxId)))).toEqual(anonymous(never))
      expect(yield* balance(other.accountId)).toMatchObject({ available: CREDITS * 1000, held: 0 })
    })
  )
})

describe.each(ofInboxes)("$method $path", (row) => {
  testing(
    "reports a missing mail domain like the catalog, and is free",
    Effect.gen(function* () {
      const { balance, open, url } = yield* hostWith({ isConfigured: false })
      const { accountId, key } = yield* open(CREDITS)
      expect(told(yield* send(url, row, key, within(row, { inbox: NEVER, message: "m" })))).toEqual([503, "upstream_not_configured", false])
      expect(yield* balance(accountId)).toMatchObject({ available: CREDITS * 1000, held: 0 })
      const catalog = yield* Effect.promise(() => fetch(`${url}/api/v1/catalog/capabilities/${row.key}`).then((answer) => answer.json()))
      expect(catalog).toMatchObject({ data: { availability: { available: false } } })
    })
  )
})

const dataOf = ({ body }: Answer) => JSON.parse(body).data

describe("an inbox over HTTP", () => {
  testing(
    "has an address that receives, and links to all that came",
    Effect.gen(function* () {
      const { deliver, open, url } = yield* host
      const { key } = yield* open(CREDITS)
      const created = dataOf(yield* send(url, rowOf("inbox.create"), key, { lifetime: 600, label: "seven" }))
      expect(created).toMatchObject({ label: "seven", message_count: 0 })
      expect(Date.parse(created.expires_at) - Date.parse(created.created_at)).toBe(600_000)
      yield* deliver(created.address, "Welcome")
      const { messages } = dataOf(yield* send(url, rowOf("inbox.listMessages"), key, { inbox: created.inbox_id }))
      expect(messages).toMatchObject([
        { from: { name: "Grace Hopper", address: "grace@example.org" }, subject: "Welcome", has_attachments: true }
      ])
      const [{ message_id: message }] = messages
      const read = dataOf(yield* send(url, rowOf("inbox.readMessage"), key, { inbox: created.inbox_id, message }))
      expect(read).toMatchObject({
        ...messages[0],
        text: "Hello\n",
        authentication: { spf: "pass", dkim: "none", dmarc: "none", arc: null },
        attachments: [{ name: "notes.txt", size: 5, url: expect.stringMatching(/^\/api\/v1\/temp-mail\/.*\/attachments\/1$/u) }],
        unreadable: null
      })
      const download = (path: string) => Effect.promise(() => fetch(url + path, { headers: { authorization: `Bearer ${key}` } }))
      const attachment = yield* download(read.attachments[0].url)
      expect(yield* Effect.promise(() => attachment.text())).toBe("notes")
      expect(attachment.headers.get("content-disposition")).toBe('attachment; filename="notes.txt"')
      expect(attachment.headers.get("content-type")).toBe("application/octet-stream")
      const raw = yield* download(read.raw_url)
      expect(yield* Effect.promise(() => raw.text())).toContain("Subject: Welcome")
      const rotated = dataOf(yield* send(url, rowOf("inbox.rotate"), key, { inbox: created.inbox_id }))
      expect(rotated).toEqual({ ...created, address: rotated.address, message_count: 1 })
      expect(rotated.address).not.toBe(created.address)
    })
  )

  testing(
    "shows no message from a kept reply: a message is deleted with its inbox",
    Effect.gen(function* () {
      const { balance, inbox, open, url } = yield* host
      const { accountId, key } = yield* open(CREDITS)
      const { inboxId, messages } = yield* inbox(accountId)
      for (const path of ["messages", `messages/${messages[0]}`]) {
        const ask = Effect.promise(() =>
          fetch(`${url}/api/v1/temp-mail/inboxes/${inboxId}/${path}`, {
            headers: { authorization: `Bearer ${key}`, "idempotency-key": `"${path}"` }
          }).then(async (answer) => [answer.status, await answer.text()] as const)
        )
        expect(yield* ask).toEqual([200, expect.stringContaining("Welcome")])
        expect(yield* ask).toEqual([409, expect.stringContaining("reply_unavailable")])
      }
      expect(yield* balance(accountId)).toMatchObject({ available: CREDITS * 1000 - 200, held: 0 })
    })
  )

  testing(
    "lets a caller wait for the next message, and says so",
    Effect.gen(function* () {
      const { balance, deliver, inbox, open, url } = yield* host
      const { accountId, key } = yield* open(CREDITS)
      const { address, inboxId } = yield* inbox(accountId, [])
      const list = (wait: number, since?: string) =>
        Effect.promise(() => {
          const path = `${url}/api/v1/temp-mail/inboxes/${inboxId}/messages${since === undefined ? "" : `?since=${since}`}`
          return fetch(path, { headers: { authorization: `Bearer ${key}`, prefer: `wait=${wait}` } })
        })
      const waiting = yield* Effect.forkChild(list(30))
      // Once the call holds its price, it waits or is about to
      yield* Effect.repeat(balance(accountId), { until: ({ held }) => held > 0 })
      yield* deliver(address, "Code 123456")
      const answer = yield* Fiber.join(waiting)
      expect(answer.headers.get("preference-applied")).toBe("wait=30")
      const { data } = JSON.parse(yield* Effect.promise(() => answer.text()))
      expect(data.messages).toMatchObject([{ subject: "Code 123456" }])
      const later = yield* list(0, data.messages[0].message_id)
      expect(yield* Effect.promise(() => later.json())).toMatchObject({ data: { messages: [] } })
      expect(yield* balance(accountId)).toMatchObject({ available: CREDITS * 1000 - 200, held: 0 })
    })
  )
})
