/** Downloads from the real server: readers that read nothing cost next to nothing, and those that leave leave nothing behind. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { RawSocket } from "./RawSocket.ts"
import { call, newStore, openAccount, serve, UNLIMITED } from "./Server.ts"

const MEGABYTE = 1024 * 1024
const READERS = 40
const SPEECH = "/api/v1/audio/tts"

/** An MP3 of 30 megabytes, as far as its first bytes tell. */
const SOUND = Buffer.alloc(30 * MEGABYTE, "a mill is a thousandth of a dollar ")
SOUND.set([0x49, 0x44, 0x33, 0x03, 0x00])

/** A speech service that answers every text with the same sound. */
const speechService = async (): Promise<string> => {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().once("end", () => {
      outgoing.writeHead(200, { "content-type": "audio/mpeg", "content-length": SOUND.length }).end(SOUND)
    })
  }).listen(0, "127.0.0.1")
  await new Promise((resolve) => server.once("listening", resolve))
  afterAll(() => server.close())
  const address = server.address()
  return `openai:http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
}

/** Bytes of memory that a process has. */
const memoryOf = (pid: number): number => Number(/^VmRSS:\s+(\d+) kB$/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024

/** Files of jobs that a process has open: they are named after their hash. */
const openFilesOf = (pid: number): number =>
  readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return /\/[0-9a-f]{64}$/u.test(readlinkSync(join(`/proc/${pid}/fd`, fd)))
    } catch {
      // It was closed meanwhile
      return false
    }
  }).length

const until = async (isSo: () => boolean | Promise<boolean>) => {
  const giveUpAt = performance.now() + 10_000
  while (!(await isSo())) {
    if (performance.now() > giveUpAt) throw new Error("It never came true")
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test.skipIf(!existsSync("/proc/self/status"))(
  "forty readers of a file that read nothing cost less than 100 MB, and close it when they leave",
  { timeout: 120_000 },
  async () => {
    const { url: store } = newStore()
    const { key } = await openAccount(store, 100)
    const server = await serve(["--store", store, "--speech", await speechService()], { env: UNLIMITED })
    const pid = server.child.pid ?? 0
    const headers = { authorization: `Bearer ${key}` }
    const { body } = await call(`${server.url}${SPEECH}`, { method: "POST", key, body: '{"text":"Long"}', headers: { prefer: "wait=30" } })
    const file = `${SPEECH}/${JSON.parse(body).data.id}/artifact`
    const read = async (range?: string) => {
      const response = await fetch(`${server.url}${file}`, { headers: { ...headers, ...(range === undefined ? {} : { range }) } })
      return [response.status, Buffer.from(await response.arrayBuffer())] as const
    }
    const [status, whole] = await read()
    expect([status, whole.equals(SOUND)]).toEqual([200, true])
    const request = (range = "") => `GET ${file} HTTP/1.1\r\nHost: millrace\r\nAuthorization: Bearer ${key}\r\n${range}\r\n`
    const before = memoryOf(pid)

    const readers = await Promise.all(Array.from({ length: READERS }, () => RawSocket.open(server.port)))
    for (const [index, reader] of readers.entries()) {
      reader.pause()
      // Every other one wants all but the first bytes
      const range = index % 2 === 0 ? "" : "Range: bytes=1000-\r\n"
      await reader.write(request(range))
    }
    // Each of them waits at an open file
    await until(() => openFilesOf(pid) === READERS)
    const samples: Array<number> = []
    for (let sample = 0; sample < 30; sample++) {
      samples.push(memoryOf(pid))
      expect((await call(`${server.url}/health`)).status).toBe(200)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(Math.max(...samples) - before).toBeLessThan(100 * MEGABYTE)
    expect(openFilesOf(pid)).toBe(READERS)

    for (const reader of readers) reader.leave()
    await until(() => openFilesOf(pid) === 0)

    // So does a reader whose second download waits behind its first
    const greedy = await RawSocket.open(server.port)
    greedy.pause()
    await greedy.write(request() + request())
    await until(() => openFilesOf(pid) === 2)
    greedy.leave()
    await until(() => openFilesOf(pid) === 0)

    const [partial, part] = await read("bytes=1000000-2999999")
    expect([partial, part.equals(SOUND.subarray(1_000_000, 3_000_000))]).toEqual([206, true])
    const [last, end] = await read("bytes=-10")
    expect([last, end.equals(SOUND.subarray(-10))]).toEqual([206, true])
    expect((await server.stop()).code).toBe(0)
  }
)
