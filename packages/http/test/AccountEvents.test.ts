/** The events of an account as they happen: who is told what, how a stream ends, and how many there may be. */
import { AccountWatch, KeyRing } from "@millrace/core"
import { Effect, Redacted } from "effect"
import { expect } from "vitest"
import { eventually, type Host, host, testing } from "./Host.ts"

const PATH = "/api/v1/account/events"

interface Open {
  readonly status: number
  readonly headers: Headers
  /** All that came so far. */
  readonly text: () => string
  readonly isEnded: () => boolean
  readonly leave: () => void
}

/** Opens a stream; it is left when the scope closes. */
const open = ({ url }: Host, bearer: Record<string, string>) =>
  Effect.acquireRelease(
    Effect.promise(async (): Promise<Open> => {
      const controller = new AbortController()
      const response = await fetch(`${url}${PATH}`, { headers: bearer, signal: controller.signal })
      let text = ""
      let isEnded = false
      const read = async () => {
        for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += part
      }
      read()
        .catch(() => {})
        .finally(() => {
          isEnded = true
        })
      return {
        status: response.status,
        headers: response.headers,
        text: () => text,
        isEnded: () => isEnded,
        leave: () => controller.abort()
      }
    }),
    ({ leave }) => Effect.sync(leave)
  )

const eventsIn = (text: string): ReadonlyArray<unknown> =>
  [...text.matchAll(/^event: changed\ndata: (.+)$/gmu)].map(([, data]) => JSON.parse(String(data)))
const told = (stream: Open, count: number) =>
  eventually(
    Effect.sync(() => eventsIn(stream.text())),
    (events) => events.length >= count
  )
const watchers = ({ run }: Host) => run(AccountWatch.AccountWatch.use((watch) => Effect.sync(() => watch.size())))

testing(
  "tell the balance at once, then each change of the own account, and nothing of another",
  Effect.gen(function* () {
    const hosts = yield* host()
    const [ours, theirs] = [yield* hosts.account(100), yield* hosts.account(50)]
    const stream = yield* open(hosts, ours.bearer)
    expect([stream.status, stream.headers.get("content-type"), stream.headers.get("cache-control")]).toEqual([
      200,
      "text/event-stream",
      "private, no-store"
    ])
    const still = { held: 0, debt: 0, jobs: [], inboxes: [] }
    expect(yield* told(stream, 1)).toEqual([{ ...still, balance: 100, account: false }])
    yield* hosts.call("/api/v1/bin/45717360", { headers: theirs.bearer })
    yield* hosts.call("/api/v1/bin/45717360", { headers: ours.bearer })
    const events = yield* told(stream, 2)
    expect(events.at(-1)).toEqual({ ...still, balance: 99.5, account: true })
    expect(JSON.stringify(events)).not.toContain("49.5")
  })
)

testing(
  "name the jobs and inboxes to which something happened",
  Effect.gen(function* () {
    const hosts = yield* host()
    const ours = yield* hosts.account(100)
    const stream = yield* open(hosts, ours.bearer)
    yield* told(stream, 1)
    const job = yield* hosts.call("/api/v1/audio/tts", { method: "POST", headers: ours.bearer, body: { text: "Hello" } })
    const { id } = (job.json as { data: { id: string } }).data
    const inbox = yield* hosts.call("/api/v1/temp-mail/inboxes", { method: "POST", headers: ours.bearer, body: {} })
    const { inbox_id } = (inbox.json as { data: { inbox_id: string } }).data
    yield* eventually(
      Effect.sync(() => stream.text()),
      (text) => text.includes(`"jobs":["${id}"]`) && text.includes(`"inboxes":["${inbox_id}"]`)
    )
  })
)

testing(
  "end with their key, and say while it lasts that they live",
  Effect.gen(function* () {
    const hosts = yield* host()
    const { accountId, bearer } = yield* hosts.account(1)
    const { key, keyId } = yield* hosts.run(KeyRing.use((keys) => keys.issue(accountId)))
    const [ends, stays] = [yield* open(hosts, { authorization: `Bearer ${Redacted.value(key)}` }), yield* open(hosts, bearer)]
    yield* eventually(
      Effect.sync(() => ends.text()),
      (text) => text.includes(": alive\n\n")
    )
    yield* hosts.run(KeyRing.use((keys) => keys.revoke(accountId, keyId)))
    yield* eventually(Effect.sync(ends.isEnded), (isEnded) => isEnded)
    expect(stays.isEnded()).toBe(false)
    yield* eventually(watchers(hosts), (size) => size === 1)
  })
)

testing(
  "are bounded for each account, and free their place when the client leaves",
  Effect.gen(function* () {
    const hosts = yield* host()
    const [ours, theirs] = [yield* hosts.account(1), yield* hosts.account(1)]
    const streams = yield* Effect.forEach(Array.from({ length: AccountWatch.WATCHERS }), () => open(hosts, ours.bearer))
    expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200))
    yield* eventually(watchers(hosts), (size) => size === AccountWatch.WATCHERS)
    const refused = yield* hosts.call(PATH, { headers: ours.bearer })
    expect([refused.status, refused.headers["retry-after"], refused.json]).toMatchObject([429, "30", { error: { code: "rate_limited" } }])
    const other = yield* open(hosts, theirs.bearer)
    expect(other.status).toBe(200)
    yield* eventually(watchers(hosts), (size) => size === AccountWatch.WATCHERS + 1)
    streams[0]?.leave()
    yield* eventually(watchers(hosts), (size) => size === AccountWatch.WATCHERS)
    expect((yield* open(hosts, ours.bearer)).status).toBe(200)
  })
)

testing(
  "need a key that may read, by GET alone",
  Effect.gen(function* () {
    const hosts = yield* host()
    const { bearer } = yield* hosts.account(1, ["operations"])
    expect((yield* hosts.call(PATH)).status).toBe(401)
    expect((yield* hosts.call(PATH, { headers: bearer })).json).toMatchObject({ error: { code: "insufficient_scope" } })
    expect((yield* hosts.call(PATH, { method: "HEAD", headers: bearer })).status).toBe(405)
    expect(yield* watchers(hosts)).toBe(0)
  })
)

testing(
  "do not keep a server from ending",
  Effect.gen(function* () {
    const hosts = yield* host()
    const stream = yield* open(hosts, (yield* hosts.account(1)).bearer)
    yield* told(stream, 1)
    const drained = yield* Effect.forkScoped(hosts.handler.drain)
    yield* eventually(Effect.sync(stream.isEnded), (isEnded) => isEnded)
    yield* eventually(
      Effect.sync(() => drained.pollUnsafe()),
      (exit) => exit !== undefined
    )
  })
)
