/** Mail by swaks, the tool with which operators try out their mail server. Where it is not installed, nothing is tested. */
import { execFile, spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import * as SelfSigned from "../../packages/upstreams/test/mail/SelfSigned.ts"
import { asking, DOMAIN, SmtpClient } from "./Mail.ts"
import { newStore, openAccount, type Server, serve, temporaryFolder } from "./Server.ts"

const SWAKS = "swaks"
const support = spawnSync(SWAKS, ["--support"], { encoding: "utf8" })
const isThere = support.error === undefined
const speaksTls = isThere && /TLS supported/u.test(support.stdout)

/** Runs it: its exit code, and the conversation that it prints. */
const swaks = ({ smtp = "" }: Server, to: string, ...args: ReadonlyArray<string>) => {
  const all = ["--server", smtp, "--ehlo", "client.example.org", "--from", "shop@example.org", "--to", to, ...args]
  return new Promise<{ readonly code: number; readonly said: string }>((resolve) => {
    execFile(SWAKS, all, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === "number" ? error.code : 0, said: stdout + stderr })
    )
  })
}

const start = async () => {
  const { url } = newStore()
  const { key } = await openAccount(url, 10)
  const folder = temporaryFolder()
  const [certificate, secret] = [join(folder, "mail.crt"), join(folder, "mail.key")]
  const { cert, key: pem } = SelfSigned.make()
  writeFileSync(certificate, cert)
  writeFileSync(secret, pem)
  const smtp = ["--mail-domain", DOMAIN, "--smtp", "127.0.0.1:0", "--smtp-tls", `${certificate},${secret}`]
  const server = await serve(["--store", url, "--dns-servers", "127.0.0.1:1", ...smtp])
  return { server, ...asking(server, key) }
}

test.skipIf(!isThere)(
  "swaks delivers, one command after the other and pipelined, and is told of addresses that nobody has",
  {
    timeout: 60_000
  },
  async () => {
    const { create, rotate, server, subjects } = await start()
    const { address, inbox_id } = await create()
    const one = await swaks(server, address, "--header", "Subject: One by one")
    expect([one.code, one.said]).toEqual([0, expect.stringContaining("<-  250")])
    const pipelined = await swaks(server, address, "--pipeline", "--header", "Subject: At once", "--attach", "@package.json")
    expect([pipelined.code, pipelined.said]).toEqual([0, expect.stringContaining("PIPELINING")])
    expect(await subjects(inbox_id)).toEqual(["At once", "One by one"])
    await rotate(inbox_id)
    // 24: no recipient was accepted
    for (const args of [[], ["--pipeline"]])
      expect(await swaks(server, address, ...args)).toMatchObject({ code: 24, said: expect.stringContaining("<** 550") })
    expect(await subjects(inbox_id)).toHaveLength(2)
    await server.stop()
  }
)

test.skipIf(!speaksTls)("swaks delivers by STARTTLS", { timeout: 60_000 }, async () => {
  const { create, server, subjects } = await start()
  const { address, inbox_id } = await create()
  const { code, said } = await swaks(server, address, "--tls", "--header", "Subject: Sealed")
  expect([code, said]).toEqual([0, expect.stringContaining("TLS started")])
  expect(await subjects(inbox_id)).toEqual(["Sealed"])
  await server.stop()
})

test("a sender that tries BDAT is told that it is not there, and is not misunderstood after it", { timeout: 60_000 }, async () => {
  const { create, server, subjects } = await start()
  const { address, inbox_id } = await create()
  const client = await SmtpClient.open(server)
  expect(client.offer).not.toMatch(/CHUNKING|BINARYMIME/u)
  expect(await client.recipient(address)).toBe("250")
  expect(await client.ask("BDAT 6 LAST")).toBe("500")
  // What a client sends that does not wait for the answer is no message, and no command that does anything
  expect(await client.ask("RCPT TO:<nobody@inbox.example>")).toBe("550")
  expect(await client.ask("DATA")).toBe("354")
  expect(await client.ask("Subject: By DATA\r\n\r\nHello\r\n.")).toBe("250")
  expect(await subjects(inbox_id)).toEqual(["By DATA"])
  await client.close()
  await server.stop()
})
