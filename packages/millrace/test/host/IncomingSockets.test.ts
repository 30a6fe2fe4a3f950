/** What comes to a host without Effect over TLS, SMPP and SOCKS 5: by real clients, servers and handshakes. */
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect, type TLSSocket } from "node:tls"
import nodemailer from "nodemailer"
import { Server as UpstreamProxy } from "proxy-chain"
import { SocksClient } from "socks"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { undoAfterwards } from "../../../../test/system/Leftovers.ts"
import { NUMBER, startSmsc } from "../../../../test/system/TextMessages.ts"
import * as SelfSigned from "../../../upstreams/test/mail/SelfSigned.ts"
import { createMillrace, type Host, type MailOptions, type ProxyOptions, type SmsOptions, standard } from "../../src/index.ts"

const DOMAIN = "mail.example.com"

const folder = mkdtempSync(join(tmpdir(), "millrace-sockets-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const certificate = SelfSigned.make("localhost")
const tls = { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") }
writeFileSync(tls.certFile, certificate.cert)
writeFileSync(tls.keyFile, certificate.key)

interface Comes {
  readonly mail?: MailOptions
  readonly sms?: SmsOptions
  readonly proxy?: ProxyOptions
}

/** A host that ends with the file, and an account with credits. No name server answers it, which keeps no mail out. */
const start = async (options: Comes) => {
  const host = await createMillrace({
    ...{ store: "memory:", standard: true, log: {}, providers: { dnsServers: ["127.0.0.1:1"] }, blobs: folder },
    ...options
  })
  undoAfterwards(() => host.close())
  const account = await host.accounts.open({ id: "ada" })
  await host.credits.grant(account, { amount: 100, source: "promotion" })
  return { host, account }
}

/** Sends by a client that trusts our certificate alone, and sends nothing without TLS. */
const sendSecurely = async ({ addresses: { smtp } }: Host, to: string, ca: string): Promise<void> => {
  const transport = nodemailer.createTransport({ ...smtp, requireTLS: true, tls: { ca, servername: "localhost" } })
  try {
    await transport.sendMail({ from: "grace@example.org", to, subject: "Welcome", text: "Your code is 482913" })
  } finally {
    transport.close()
  }
}

const portOf = ({ addresses: { proxy } }: Host, wanted: string): number =>
  proxy?.endpoints.find(({ protocol }) => protocol === wanted)?.port ?? 0

describe("mail.tls", () => {
  it("lets senders begin TLS with this certificate", async () => {
    const { account, host } = await start({ mail: { domain: DOMAIN, listen: "127.0.0.1:0", tls } })
    const { data: inbox } = await host.run(standard.inbox.create, {}, { account })
    await expect(sendSecurely(host, inbox.address, SelfSigned.make().cert)).rejects.toThrow("self-signed certificate")
    await sendSecurely(host, inbox.address, certificate.cert)
    const { data } = await host.run(standard.inbox.listMessages, { inbox: inbox.inbox_id }, { account })
    expect(data.messages).toMatchObject([{ subject: "Welcome" }])
  })

  it("is not offered without it", async () => {
    const { account, host } = await start({ mail: { domain: DOMAIN, listen: "127.0.0.1:0" } })
    const { data: inbox } = await host.run(standard.inbox.create, {}, { account })
    await expect(sendSecurely(host, inbox.address, certificate.cert)).rejects.toMatchObject({ code: "ETLS" })
  })
})

describe("proxy.tls", () => {
  /** A connection by TLS to the HTTP proxy, which trusts our certificate alone. */
  const secured = async (port: number): Promise<TLSSocket> => {
    const socket = connect({ host: "127.0.0.1", port, ca: certificate.cert, servername: "localhost" })
    await once(socket, "secureConnect")
    return socket
  }

  it("makes the HTTP proxy speak TLS too, on the same port, and check credentials there", async () => {
    const { account, host } = await start({ proxy: { listen: "127.0.0.1:0", country: "DE", tls } })
    expect(host.addresses.proxy?.endpoints.map(({ protocol }) => protocol)).toEqual(["http", "https"])
    expect(portOf(host, "https")).toBe(portOf(host, "http"))
    const { data } = await host.run(standard.proxy.createSession, { country: "DE" }, { account })
    // A private destination is refused, which shows that the credentials were admitted
    for (const [password, status] of [
      [data.password, "403"],
      ["wrong", "407"]
    ] as const) {
      const socket = await secured(portOf(host, "https"))
      expect(socket.authorized).toBe(true)
      const auth = Buffer.from(`${data.username}:${password}`).toString("base64")
      socket.write(`CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nProxy-Authorization: Basic ${auth}\r\n\r\n`)
      expect(String((await once(socket, "data"))[0]).split(" ")[1]).toBe(status)
      socket.destroy()
    }
  })
})

describe("sms.smpp", () => {
  it("binds to an SMSC with its name and password, and a text that it brings ends a wait", async () => {
    const smsc = await startSmsc()
    const { account, host } = await start({ sms: { numbers: [NUMBER], smpp: `smpp://ada:secret@127.0.0.1:${smsc.port}` } })
    const warningsOf = async () => {
      const response = await host.fetch(new Request("http://host/ready"))
      return ((await response.json()) as { warnings: ReadonlyArray<string> }).warnings
    }
    await expect.poll(warningsOf, { timeout: 10_000 }).toEqual([])
    expect([...smsc.bound.keys()]).toEqual(["ada"])
    const since = new Date(Date.now() - 60_000).toISOString()
    const input = { source: "sms", identifier: "Example", phone_number: NUMBER, timeout: 60, since } as const
    const wait = host.run(standard.verification.wait, input, { account })
    expect(await smsc.deliver("ada", "482913 is your Example code")).toBe(0)
    const { charged, data } = await wait
    expect([data.code, charged]).toEqual(["482913", 5])
  })
})

describe("proxy.socks", () => {
  /** An address that a node may connect to. The upstream proxy answers for it, so nothing leaves this machine. */
  const TARGET = { host: "198.41.0.4", port: 80 }

  /** A proxy of somebody else, which answers for every destination itself, and says what it was asked for. */
  const startUpstream = async () => {
    const asked: Array<string> = []
    const destination = createServer((_request, response) => response.end("the destination"))
    const upstream = new UpstreamProxy({
      ...{ host: "127.0.0.1", port: 0 },
      prepareRequestFunction: ({ hostname, port }) => {
        asked.push(`${hostname}:${port}`)
        return { customConnectServer: destination }
      }
    })
    await upstream.listen()
    undoAfterwards(() => upstream.close(true))
    return { port: upstream.port, asked }
  }

  let host: Host
  let account: string
  let asked: ReadonlyArray<string>
  beforeAll(async () => {
    const upstream = await startUpstream()
    asked = upstream.asked
    const upstreamsFile = join(folder, "upstreams")
    writeFileSync(upstreamsFile, `# one\nhttp://127.0.0.1:${upstream.port} country=FR\n`)
    ;({ account, host } = await start({ proxy: { socks: "127.0.0.1:0", upstreamsFile } }))
  })

  const tunnel = (userId: string, password: string, destination: typeof TARGET) =>
    SocksClient.createConnection({
      proxy: { host: "127.0.0.1", port: portOf(host, "socks5"), type: 5, userId, password },
      ...{ command: "connect", destination }
    })

  it("carries the traffic of a session both ways", async () => {
    expect(host.addresses.proxy?.endpoints.map(({ protocol }) => protocol)).toEqual(["socks5", "socks5h"])
    const { data } = await host.run(standard.proxy.createSession, { country: "FR" }, { account })
    const { socket } = await tunnel(data.username, data.password, TARGET)
    socket.write(`GET / HTTP/1.1\r\nHost: ${TARGET.host}\r\nConnection: close\r\n\r\n`)
    let answer = ""
    for await (const chunk of socket) answer += chunk
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/u)
    expect(answer).toContain("the destination")
    expect(asked).toEqual([`${TARGET.host}:${TARGET.port}`])
  })

  it("refuses a wrong password, and a private destination before the other proxy is asked", async () => {
    const before = asked.length
    const { data } = await host.run(standard.proxy.createSession, { country: "FR" }, { account })
    await expect(tunnel(data.username, "wrong", TARGET)).rejects.toThrow("Socks5 Authentication failed")
    await expect(tunnel(data.username, data.password, { host: "127.0.0.1", port: 80 })).rejects.toThrow("NotAllowed")
    expect(asked.length).toBe(before)
  })
})
