/**
 * Two hosts on one store: mail, text messages and proxy sessions that one of them takes count at the other at once. On PostgreSQL, and on a
 * stand-in of KurrentDB with the state in PostgreSQL.
 */
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { readdirSync } from "node:fs"
import { Schema } from "effect"
import { beforeAll, describe, expect, test } from "vitest"
import { type Change, changed } from "./Changes.ts"
import { millrace } from "./InProcess.ts"
import { asking, DOMAIN, dataOf, INBOXES, SmtpClient, senderTo } from "./Mail.ts"
import { newDatabase, startNode } from "./Networked.ts"
import { byConnect, bySocks, echoed, nodeOf, opened, Session, startEcho, TO_LOOPBACK } from "./ProxyClient.ts"
import {
  Audit,
  call,
  type Environment,
  eventsOf,
  Opened,
  Process,
  problemOf,
  type Server,
  serve,
  temporaryFolder,
  UNLIMITED
} from "./Server.ts"
import { bring, NUMBER, SETTINGS as SMS, type Smsc, startSmsc, twilioCall } from "./TextMessages.ts"

const STORES: ReadonlyArray<readonly [name: string, settings: () => Promise<Environment>]> = [
  ["PostgreSQL", async () => ({ MILLRACE_STORE: await newDatabase() })],
  ["KurrentDB with its state in PostgreSQL", async () => ({ MILLRACE_STORE: (await startNode()).url, MILLRACE_STATE: await newDatabase() })]
]

const WAIT_PRICE = 5

/** Milliseconds of a sticky proxy session. */
const LIFETIME = 5_000

/** An inbox may live for a second, and a sticky proxy session ends soon. */
const SOURCES: ReadonlyArray<Change> = [
  TO_LOOPBACK,
  ["inboxes/Inbox.ts", "minimum: 60", "minimum: 1"],
  [
    "proxies/ProxySessions.ts",
    "lifetime: Duration.toMillis(lifetime)",
    `lifetime: terms.mode === "sticky" ? ${LIFETIME} : Duration.toMillis(lifetime)`
  ]
]

const PROXY = ["--proxy", "127.0.0.1:0", "--socks", "127.0.0.1:0", "--proxy-exits", "127.0.0.1", "--proxy-country"]

/** Asks until it is so, or fails with the test. */
const eventually = async (isIt: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await isIt())) await new Promise((resolve) => setTimeout(resolve, 50))
}

const sleepUntil = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.max(0, time - Date.now()) + 1))

const Code = Schema.Struct({
  code: Schema.NullOr(Schema.String),
  sender: Schema.NullOr(Schema.String),
  message: Schema.NullOr(Schema.String)
})
const Billing = Schema.Struct({ balance: Schema.Finite, held: Schema.Finite })

describe.each(STORES)("two hosts on %s", (_, settings) => {
  let env: Environment = {}
  let smsc: Smsc
  let key = ""
  let one: Server
  let other: Server
  const blobs = temporaryFolder()

  const command = async (...args: ReadonlyArray<string>): Promise<string> => {
    const { code, stdout, stderr } = await millrace(args, { env })
    if (code !== 0) throw new Error(`millrace ${args.join(" ")} ended with ${code}: ${stderr}`)
    return stdout
  }

  beforeAll(async () => {
    smsc = await startSmsc()
    env = { ...(await settings()), ...UNLIMITED, MILLRACE_MASTER_KEY: randomBytes(32).toString("hex") }
    const start = (name: string) =>
      serve(
        [
          ...["--blobs", blobs, "--dns-servers", "127.0.0.1:1", "--mail-domain", DOMAIN, "--smtp", "127.0.0.1:0"],
          ...[...SMS, ...PROXY, "DE"]
        ],
        changed(SOURCES, { env: { ...env, MILLRACE_SMPP: `smpp://${name}:secret@127.0.0.1:${smsc.port}` } })
      )
    // At once, on a store in which there is nothing yet
    const starting = [start("one"), start("other")] as const
    ;[one, other] = await Promise.all(starting)
    const open = await command("accounts", "open", "--email", "ada@example.com", "--verified")
    ;({ key } = Schema.decodeUnknownSync(Schema.fromJsonString(Opened))(open))
  }, 60_000)

  /** How many events of a type the log has. */
  const received = async (type: string) => eventsOf(await command("events")).filter((event) => event.type === type).length
  const billing = async (host: Server) => dataOf(Billing, await call(`${host.url}/api/v1/account/billing`, { key }))
  const heldAt = (host: Server) => eventually(async () => (await billing(host)).held > 0)

  test("mail that comes to one is listed and read at the other, and ends a wait there", { timeout: 60_000 }, async () => {
    for (const [receiving, asked] of [
      [one, other],
      [other, one]
    ] as const) {
      const { create, get, send, subjects } = asking(asked, key)
      const { address, inbox_id } = await create()
      const waiting = subjects(inbox_id, 30)
      await heldAt(receiving)
      const sender = senderTo(receiving)
      const began = Date.now()
      await sender.send({ to: address, subject: "Welcome", text: "Your code is 482 913." })
      expect(await waiting).toEqual(["Welcome"])
      expect(Date.now() - began).toBeLessThan(25_000)
      await sender.send({ to: address, subject: "Again", text: "Your code is 482 914." })
      sender.close()
      for (const host of [one, other]) expect(await asking(host, key).subjects(inbox_id)).toEqual(["Again", "Welcome"])
      const { messages } = await get(
        Schema.Struct({ messages: Schema.Array(Schema.Struct({ message_id: Schema.String })) }),
        `${INBOXES}/${inbox_id}/messages`
      )
      const raw = await send(`${INBOXES}/${inbox_id}/messages/${messages.at(-1)?.message_id}/raw`)
      expect(raw.body).toContain("Your code is 482 913.")
    }
  })

  test("an address that was rotated away or deleted at one is refused at both, from the answer on", { timeout: 60_000 }, async () => {
    const clients = await Promise.all([SmtpClient.open(one), SmtpClient.open(other)])
    const refusals = (address: string) => Promise.all(clients.map((client) => client.recipient(address)))
    const { address: first, inbox_id } = await asking(one, key).create()
    let address = first
    expect(await refusals(address)).toEqual(["250", "250"])
    for (const host of [one, other, other, one, other]) {
      const late = await SmtpClient.open(host === one ? other : one)
      expect(await late.begin(address)).toBe("354")
      const before = address
      ;({ address } = await asking(host, key).rotate(inbox_id))
      expect([await refusals(before), await refusals(address)]).toEqual([
        ["550", "550"],
        ["250", "250"]
      ])
      // Its recipient was accepted before
      expect(await late.ask("Subject: Late\r\n\r\nLate\r\n.")).toBe("550")
      await late.close()
    }
    const late = await SmtpClient.open(one)
    expect(await late.begin(address)).toBe("354")
    expect((await asking(other, key).send(`${INBOXES}/${inbox_id}`, { method: "DELETE" })).status).toBe(200)
    expect(await refusals(address)).toEqual(["550", "550"])
    expect(await late.ask("Subject: Late\r\n\r\nLate\r\n.")).toBe("550")
    for (const host of [one, other]) expect((await asking(host, key).send(`${INBOXES}/${inbox_id}/messages`)).status).toBe(404)
    await Promise.all([...clients, late].map((client) => client.close()))
  })

  test("an inbox that has expired is refused at both, and its files are removed", { timeout: 60_000 }, async () => {
    const clients = await Promise.all([SmtpClient.open(one), SmtpClient.open(other)])
    const { address, expires_at, inbox_id } = await asking(one, key).create({ lifetime: 5 })
    const before = new Set(readdirSync(blobs))
    const sender = senderTo(other)
    // Longer than what is kept in the state store
    await sender.send({ to: address, subject: "In time", text: "Hello. ".repeat(10_000) })
    sender.close()
    const kept = readdirSync(blobs).filter((name) => !before.has(name))
    expect(kept).toHaveLength(1)
    await sleepUntil(Date.parse(expires_at))
    expect(await Promise.all(clients.map((client) => client.recipient(address)))).toEqual(["550", "550"])
    for (const host of [one, other]) expect((await asking(host, key).send(`${INBOXES}/${inbox_id}`)).status).toBe(404)
    await eventually(() => !readdirSync(blobs).some((name) => kept.includes(name)))
    await Promise.all(clients.map((client) => client.close()))
  })

  /** Waits for a code at a host, while the other is told to bring it. Gives the answer, and what both hosts say of the balance. */
  const codeAt = async (asked: Server, bring: () => Promise<void>) => {
    const before = (await billing(asked)).balance
    const body = JSON.stringify({ source: "sms", identifier: "example", phone_number: NUMBER, timeout: 60 })
    const waiting = call(`${asked.url}/api/v1/verify/wait`, { method: "POST", key, body })
    await heldAt(asked)
    await bring()
    const found = dataOf(Code, await waiting)
    const after = await Promise.all([one, other].map(billing))
    expect(after).toEqual([one, other].map(() => ({ balance: before - WAIT_PRICE, held: 0 })))
    return found
  }

  test("a text message that a provider brings to one ends a wait at the other, which is charged once", { timeout: 60_000 }, async () => {
    const before = await received("SmsReceived")
    for (const [at, asked, code] of [
      [one, other, "482913"],
      [other, one, "771204"]
    ] as const) {
      const message = twilioCall(`SM${code}`, `${code} is your Example code`)
      const found = await codeAt(asked, async () => {
        // Brought again to each: acknowledged, and not received again
        for (const host of [at, one, other]) expect((await bring(host, message)).status).toBe(200)
      })
      expect(found).toEqual({ code, sender: "+14155550100", message: `${code} is your Example code` })
      const forged = await bring(at, { ...twilioCall("SM0", "000000 is your Example code"), headers: message.headers ?? {} })
      expect([forged.status, problemOf(forged).code]).toEqual([401, "unauthorized"])
    }
    expect(await received("SmsReceived")).toBe(before + 2)
  })

  test("a text message that an SMSC brings to one ends a wait at the other", { timeout: 60_000 }, async () => {
    await eventually(() => smsc.bound.size === 2)
    const found = await codeAt(one, async () => {
      expect(await smsc.deliver("other", "Your code is 660312")).toBe(0)
    })
    expect(found).toEqual({ code: "660312", sender: "Example", message: "Your code is 660312" })
  })

  test("a proxy session works at every node, and its live tunnels are closed at all of them when it ends", {
    timeout: 60_000
  }, async () => {
    const node = new Process(["proxy", ...PROXY, "FR"], changed(SOURCES, { env }))
    await node.until(() => node.stdout.includes("\n"))
    const echo = await startEcho()
    const ports = [one, other, node].map(nodeOf)
    const session = async (host: Server, body: object) =>
      dataOf(Session, await call(`${host.url}/api/v1/proxy/sessions`, { method: "POST", key, body: JSON.stringify(body) }))

    for (const host of [one, other]) {
      const rotating = await session(host, { mode: "rotating" })
      for (const { http, socks } of ports) {
        for (const tunnel of [await byConnect(http, rotating, echo), await bySocks(socks, rotating, echo)]) {
          expect(await echoed(opened(tunnel), "hello")).toBe("hello")
          opened(tunnel).destroy()
        }
        expect(await byConnect(http, { ...rotating, password: "wrong" }, echo)).toBe("407")
      }
    }

    const sticky = await session(other, { mode: "sticky" })
    const ends = Date.parse(sticky.expires_at)
    const tunnels = await Promise.all(ports.flatMap(({ http, socks }) => [byConnect(http, sticky, echo), bySocks(socks, sticky, echo)]))
    const closings = tunnels.map(async (tunnel) => {
      expect(await echoed(opened(tunnel), "hello")).toBe("hello")
      await once(opened(tunnel), "close")
      return Date.now() - ends
    })
    const late = await Promise.all(closings)
    // They look four times a second; a busy machine is slower
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...late)).toBeLessThan(5_000)
    for (const { http, socks } of ports) {
      expect(await byConnect(http, sticky, echo)).toBe("407")
      expect(await bySocks(socks, sticky, echo)).toBeTypeOf("string")
    }
    expect((await node.stop()).code).toBe(0)
  })

  test("both end cleanly, and leave a log without a fault", { timeout: 60_000 }, async () => {
    for (const host of [one, other]) expect((await host.stop()).code).toBe(0)
    const audit = Schema.decodeUnknownSync(Schema.fromJsonString(Audit))(await command("audit"))
    expect(audit).toMatchObject({ ok: true, problems: [] })
  })
})
