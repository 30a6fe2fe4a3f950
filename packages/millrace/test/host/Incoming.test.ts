/** Mail, text messages and proxied connections at a host without Effect: over real sockets, told where they listen, and ended by `close`. */
import { createHmac } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import nodemailer from "nodemailer"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createMillrace, type Host, standard } from "../../src/index.ts"

const DOMAIN = "mail.example.com"
const NUMBER = "+15005550006"
const TOKEN = "the token of the provider"

/** No name server: nothing of a sender can be verified, which keeps no mail out. */
const providers = { dnsServers: ["127.0.0.1:1"] }
const folder = mkdtempSync(join(tmpdir(), "millrace-incoming-"))
const common = { store: "memory:", standard: true, log: {}, providers, blobs: folder } as const
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const open = async (host: Host): Promise<string> => {
  const account = await host.accounts.open({ id: "ada" })
  await host.credits.grant(account, { amount: 100, source: "promotion" })
  return account
}

const smtpOf = ({ addresses }: Host) => {
  if (addresses.smtp === undefined) throw new Error("This host receives mail")
  return addresses.smtp
}

const send = async (host: Host, to: string, subject: string): Promise<void> => {
  const transport = nodemailer.createTransport({ ...smtpOf(host), ignoreTLS: true })
  await transport.sendMail({ from: "Grace Hopper <grace@example.org>", to, subject, text: "Your code is 482913" })
  transport.close()
}

/** A message that Twilio brings: signed over the address and the fields in the order of their names. */
const sms = (id: string, text: string, token = TOKEN): Request => {
  const url = "https://api.example.com/hooks/sms/twilio"
  const fields = { Body: text, From: "+14155550100", MessageSid: id, To: NUMBER }
  const signed = url + Object.entries(fields).flat().join("")
  const headers = { "x-twilio-signature": createHmac("sha1", token).update(signed).digest("base64") }
  return new Request("http://127.0.0.1/hooks/sms/twilio", { method: "POST", headers, body: new URLSearchParams(fields) })
}

/** The status of a CONNECT to a private address: 403 shows that the credentials were admitted, and that the address was not. */
const statusOf = async (port: number, user: string, password: string): Promise<string | undefined> => {
  const socket = connect(port, "127.0.0.1")
  const auth = Buffer.from(`${user}:${password}`).toString("base64")
  socket.write(`CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nProxy-Authorization: Basic ${auth}\r\n\r\n`)
  const [answer] = await once(socket, "data")
  socket.destroy()
  return String(answer).split(" ")[1]
}

/** Waits for an answer of an SMTP server that begins so. */
const answered = (socket: Socket, code: string): Promise<void> =>
  new Promise((resolve, reject) => {
    let said = ""
    const hear = (text: Buffer) => {
      said += text
      if (!new RegExp(`^${code} `, "mu").test(said)) return
      socket.off("data", hear)
      resolve()
    }
    socket.on("data", hear)
    socket.once("close", () => reject(new Error(`The server said ${said} and left`)))
  })

/** What a client is greeted with. */
const greetingOf = async (at: { readonly host: string; readonly port: number }): Promise<string> => {
  const socket = connect(at)
  const [greeting] = await once(socket, "data")
  socket.destroy()
  return String(greeting).slice(0, 3)
}

/** The status of a POST to each path, at a server whose next handler answers 418. */
const takenOf = async (host: Host, paths: ReadonlyArray<string>): Promise<ReadonlyArray<number>> => {
  const server = createServer((request, response) => host.handler(request, response, () => response.writeHead(418).end()))
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  const statuses: Array<number> = []
  for (const path of paths) statuses.push((await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", body: "" })).status)
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  return statuses
}

describe("a host with mail, public numbers and a proxy node", () => {
  let host: Host
  let account: string
  beforeAll(async () => {
    host = await createMillrace({
      ...common,
      mail: { domain: DOMAIN, listen: "127.0.0.1:0", limits: { size: 100_000 } },
      sms: { numbers: [NUMBER], twilioToken: TOKEN, publicUrl: "https://api.example.com" },
      proxy: { listen: "127.0.0.1:0", socks: "127.0.0.1:0", country: "de", region: "Hesse", byteLimit: 1_000, lifetime: "5 minutes" }
    })
    account = await open(host)
  })
  afterAll(() => host.close())

  it("says where it listens", () => {
    const { proxy, smtp } = host.addresses
    expect(smtp).toEqual({ host: "127.0.0.1", port: expect.any(Number) })
    expect(smtp?.port).toBeGreaterThan(0)
    expect(proxy).toMatchObject({ country: "DE", region: "Hesse", host: "127.0.0.1" })
    expect(proxy?.endpoints.map(({ protocol }) => protocol)).toEqual(["http", "socks5", "socks5h"])
  })

  it("receives mail for an inbox, within its limits", async () => {
    const { data: inbox } = await host.run(standard.inbox.create, {}, { account })
    expect(inbox.address.endsWith(`@${DOMAIN}`)).toBe(true)
    await send(host, inbox.address, "Welcome")
    const { data } = await host.run(standard.inbox.listMessages, { inbox: inbox.inbox_id }, { account })
    expect(data.messages).toMatchObject([{ subject: "Welcome", from: { address: "grace@example.org" } }])
    await expect(send(host, inbox.address, "x".repeat(100_001))).rejects.toMatchObject({ responseCode: 552 })
    await expect(send(host, `nobody@${DOMAIN}`, "Welcome")).rejects.toMatchObject({ responseCode: 550 })
  })

  it("ends a wait with a message that a provider signed", async () => {
    const since = new Date(Date.now() - 60_000).toISOString()
    const input = { source: "sms", identifier: "Example", phone_number: NUMBER, timeout: 60, since } as const
    const wait = host.run(standard.verification.wait, input, { account })
    expect((await host.fetch(sms("SM0", "111111 is your Example code", "another token"))).status).toBe(401)
    expect((await host.fetch(sms("SM1", "482913 is your Example code"))).status).toBe(200)
    const { charged, data } = await wait
    expect([data.code, data.sender, charged]).toEqual(["482913", "+14155550100", 5])
  })

  it("admits the sessions that it opens at its node, with the bounds of its options", async () => {
    const { data } = await host.run(standard.proxy.createSession, { country: "DE" }, { account })
    expect(data).toMatchObject({ country: "DE", host: "127.0.0.1", port: host.addresses.proxy?.endpoints[0]?.port })
    const left = Date.parse(data.expires_at) - Date.now()
    expect([left > 0, left <= 300_000]).toEqual([true, true])
    expect(await statusOf(data.port, data.username, data.password)).toBe("403")
    expect(await statusOf(data.port, data.username, "wrong")).toBe("407")
  })

  it("lists sessions, of all accounts or of one, and ends them", async () => {
    const other = await host.accounts.open({ id: "grace" })
    await host.credits.grant(other, { amount: 10, source: "promotion" })
    const { data } = await host.run(standard.proxy.createSession, { country: "DE" }, { account: other })
    const shown = { session: data.username, account: other, status: "open", country: "DE", sent: 0, received: 0 } as const
    expect(await host.proxies.sessions({ account: "grace" })).toMatchObject([shown])
    expect((await host.proxies.sessions({ open: true })).map(({ session }) => session)).toContain(data.username)
    // An open tunnel would be closed by its node: it hears of the end from the log
    const end = await host.proxies.end(data.username, { by: "ada", reason: "abuse" })
    expect(end).toMatchObject({ ...shown, status: "ended" })
    expect(await statusOf(data.port, data.username, data.password)).toBe("407")
    expect(await host.proxies.sessions({ account: other, open: true })).toEqual([])
    expect(await host.proxies.end(data.username)).toMatchObject({ status: "ended" })
    await expect(host.proxies.end("proxy_none")).rejects.toThrow("There is no proxy session proxy_none")
    await expect(host.proxies.sessions({ account: "nobody" })).rejects.toThrow()
    // @ts-expect-error It is no option
    await expect(host.proxies.sessions({ acount: other })).rejects.toThrow(/acount/u)
    expect((await host.audit()).ok).toBe(true)
  })

  it("takes the path of its hooks before other handlers, and no other path below /hooks", async () => {
    expect(await takenOf(host, ["/hooks/sms/twilio", "/hooks/sms/none", "/hooks/other", "/hooks/smsx"])).toEqual([401, 404, 418, 418])
  })

  it("documents the hooks whose secrets it has", async () => {
    const response = await host.fetch(new Request("http://host/api/v1/openapi.json"))
    const { paths } = (await response.json()) as { paths: object }
    expect(Object.keys(paths).filter((path) => path.startsWith("/hooks"))).toEqual(["/hooks/sms/twilio"])
  })

  it("is ready, with a warning while its SMSC is not there", async () => {
    const ready = async (host: Host) => {
      const response = await host.fetch(new Request("http://host/ready"))
      const { reasons, warnings } = (await response.json()) as { reasons: ReadonlyArray<string>; warnings: ReadonlyArray<string> }
      return [response.status, reasons, warnings]
    }
    await expect.poll(() => ready(host), { timeout: 10_000 }).toEqual([200, [], []])
    const lonely = await createMillrace({ ...common, sms: { numbers: [NUMBER], smpp: "smpp://ada:secret@127.0.0.1:1" } })
    const warning = "the SMSC is not connected, so its text messages do not arrive here"
    await expect.poll(() => ready(lonely), { timeout: 10_000 }).toEqual([200, [], [warning]])
    await lonely.close()
  })
})

describe("a host without these options", () => {
  let host: Host
  let account: string
  beforeAll(async () => {
    host = await createMillrace(common)
    account = await open(host)
  })
  afterAll(() => host.close())

  it("listens nowhere, and says that they are not set up", async () => {
    expect(host.addresses).toEqual({})
    const { key } = await host.keys.issue(account)
    const post = async (path: string, body: object) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
      const response = await host.fetch(new Request(`http://host/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) }))
      return [response.status, ((await response.json()) as { error: { code: string } }).error.code]
    }
    const missing = [503, "upstream_not_configured"]
    expect(await post("/temp-mail/inboxes", {})).toEqual(missing)
    const wait = { source: "sms", identifier: "Example", phone_number: NUMBER, timeout: 15 }
    expect(await post("/verify/wait", wait)).toEqual(missing)
    expect(await post("/proxy/sessions", { country: "DE" })).toEqual(missing)
    expect((await host.balance(account)).available).toBe(100)
    expect(await takenOf(host, ["/hooks/sms/twilio"])).toEqual([418])
  })
})

it("ends calls, then the mail that is being received, and keeps what it acknowledged", { timeout: 60_000 }, async () => {
  const store = `sqlite:${join(folder, "closing.db")}`
  const options = { ...common, store, grace: 0.5, sms: { numbers: [NUMBER] } } as const
  const host = await createMillrace({ ...options, mail: { domain: DOMAIN, listen: "127.0.0.1:0" } })
  const account = await open(host)
  const { data: inbox } = await host.run(standard.inbox.create, {}, { account })
  const { available } = await host.balance(account)

  const client = connect(smtpOf(host))
  await answered(client, "220")
  client.write(`EHLO client\r\nMAIL FROM:<grace@example.org>\r\nRCPT TO:<${inbox.address}>\r\nDATA\r\n`)
  await answered(client, "354")
  client.write("Subject: Last words\r\n\r\nYour code is ")
  const { key } = await host.keys.issue(account)
  const body = JSON.stringify({ source: "sms", identifier: "Example", phone_number: NUMBER, timeout: 120 })
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const wait = host.fetch(new Request("http://host/api/v1/verify/wait", { method: "POST", headers, body }))
  await expect.poll(async () => (await host.balance(account)).holds.length).toBe(1)

  const closed = host.close()
  expect((await wait).status).toBe(503)
  await expect.poll(() => greetingOf(smtpOf(host)), { timeout: 10_000 }).toBe("421")
  client.write("482913\r\n.\r\n")
  await answered(client, "250")
  await closed
  await expect(once(connect(smtpOf(host)), "connect")).rejects.toThrow("ECONNREFUSED")

  const reopened = await createMillrace({ ...options, mail: { domain: DOMAIN } })
  expect(reopened.addresses).toEqual({})
  expect((await reopened.balance(account)).available).toBe(available)
  const { data } = await reopened.run(standard.inbox.listMessages, { inbox: inbox.inbox_id }, { account })
  expect(data.messages.map(({ subject }) => subject)).toEqual(["Last words"])
  await reopened.close()
})

describe("a mistake", () => {
  const create = createMillrace as (options?: unknown) => Promise<Host>
  const tls = { certFile: "/none/cert.pem", keyFile: "/none/key.pem" }
  const node = { listen: "127.0.0.1:0", country: "DE" }

  it.each([
    [{ mail: "example.com" }, 'The option mail of createMillrace is "example.com": give an object with domain, listen, tls, limits'],
    [{ mail: { listen: "127.0.0.1:0" } }, "The option mail of createMillrace needs domain"],
    [{ mail: { domain: "Example" } }, 'The option domain of mail is "Example": give a domain in lower case such as mail.example.com'],
    [{ mail: { domain: DOMAIN, listen: "2525" } }, 'The option listen of mail is "2525": give an address and a port such as'],
    [{ mail: { domain: DOMAIN, listen: 2525 } }, "The option listen of mail is 2525: give an address and a port"],
    [{ mail: { domain: DOMAIN, port: 25 } }, "The option port of mail does not exist; there are domain, listen, tls, limits"],
    [{ mail: { domain: DOMAIN, tls } }, "The option mail of createMillrace has tls, but not listen"],
    [{ mail: { domain: DOMAIN, listen: "[::1]:0", tls: { certFile: "x" } } }, "The option mail.tls of createMillrace needs keyFile"],
    [{ mail: { domain: DOMAIN, listen: "[::1]:0", limits: { size: 0 } } }, "The option size of mail.limits is 0: give a whole number"],
    [
      { mail: { domain: DOMAIN, listen: "[::1]:0", limits: { idle: "soon" } } },
      'The option idle of mail.limits is "soon": give milliseconds'
    ],
    [{ sms: {} }, "The option sms of createMillrace needs numbers"],
    [{ sms: { numbers: NUMBER } }, `The option numbers of sms is "${NUMBER}": give an array such as`],
    [{ sms: { numbers: ["five"] } }, "The option numbers of sms is an array: give an array such as"],
    [{ sms: { numbers: [] } }, "The option numbers of sms is an array: give an array such as"],
    [{ sms: { numbers: [NUMBER], twilioToken: "" } }, 'The option twilioToken of sms is "": give the secret as text'],
    [
      { sms: { numbers: [NUMBER], smpp: "tcp://ada:s3cret@host" } },
      "The option smpp of sms is another text: give such as smpp://name:password@"
    ],
    [{ sms: { numbers: [NUMBER], publicUrl: "api.example.com" } }, "The option publicUrl of sms is another text: give such as https://"],
    [{ sms: { numbers: [NUMBER], token: "x" } }, "The option token of sms does not exist; there are numbers, twilioToken"],
    [{ proxy: { ...node, country: "Germany" } }, 'The option country of proxy is "Germany": give two letters such as DE'],
    [{ proxy: { ...node, socks: ":1080" } }, 'The option socks of proxy is ":1080": give an address and a port'],
    [{ proxy: { ...node, exits: ["eth0"] } }, "The option exits of proxy is an array: give an array of IP addresses"],
    [{ proxy: { ...node, byteLimit: 0.5 } }, "The option byteLimit of proxy is 0.5: give a whole number"],
    [{ proxy: { ...node, lifetime: "long" } }, 'The option lifetime of proxy is "long": give milliseconds'],
    [{ proxy: { country: "DE" } }, "The option proxy of createMillrace has country, but not listen or socks"]
  ])("of the option %j is told at once", async (option, sentence) => {
    const refused = create({ ...common, ...option })
    await expect(refused).rejects.toMatchObject({ code: "invalid_argument", message: expect.stringContaining(sentence) })
    await expect(refused).rejects.not.toThrow("s3cret")
  })

  it.each([
    [{ proxy: { listen: "127.0.0.1:0" } }, "A proxy needs the option proxy.country, which says where"],
    [{ proxy: { ...node, listen: "0.0.0.0:0" } }, "A proxy that listens on every address needs the option proxy.host"],
    [{ proxy: { ...node, tls } }, "The certificate /none/cert.pem and the key /none/key.pem cannot be used: ENOENT"],
    [{ mail: { domain: DOMAIN, listen: "127.0.0.1:0", tls } }, "/none/cert.pem"],
    [{ mail: { domain: DOMAIN, listen: "203.0.113.1:2525" } }, "The SMTP server cannot listen on 203.0.113.1, port 2525"],
    [{ proxy: { ...node, listen: "203.0.113.1:8080" } }, "The proxy cannot be served: 203.0.113.1:8080"]
  ])("of %j is told when the host starts, which it does not", async (option, sentence) => {
    await expect(create({ ...common, ...option })).rejects.toThrow(sentence)
  })
})
