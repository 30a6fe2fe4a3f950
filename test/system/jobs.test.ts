/** The story of README's jobs, as a stranger lives it: read while they run, killed half way, ended after the next start, cancelled for nothing. */
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { expect, test } from "vitest"
import { framesOf, SAMPLES_PER_FRAME } from "../../packages/upstream-espeak/test/Mp3.ts"
import { millrace } from "./InProcess.ts"
import {
  type Answer,
  auditOf,
  balanceOf,
  type Call,
  call,
  header,
  newStore,
  openAccount,
  Process,
  readLog,
  serve,
  UNLIMITED
} from "./Server.ts"

const DOMAINS = 250
const ADDRESSES = 1_000
const ADDRESS_PRICE = 0.6
const SPEECH_PRICE = 5
const GRANTED = 1_000

/** The one of the examples, on a free port: it takes its time, and knows every name under `.mill`. */
const nameServer = async () => {
  const script = fileURLToPath(new URL("../../examples/name-server.ts", import.meta.url))
  const server = new Process([], { script, env: { PORT: "0" } })
  await server.until(() => server.stdout.includes("\n"))
  return /127\.0\.0\.1:\d+/u.exec(server.stdout)?.[0] ?? ""
}

const Data = <A>(data: Schema.Codec<A, unknown>) => Schema.fromJsonString(Schema.Struct({ data }))
const decoded = <A>(data: Schema.Codec<A, unknown>, { body, status }: Answer): A => {
  if (status >= 300) throw new Error(`${status}: ${body}`)
  return Schema.decodeUnknownSync(Data(data))(body).data
}

const Created = Schema.Struct({ id: Schema.String, status: Schema.String })
const Begun = Schema.Struct({ job_id: Schema.String, total_emails: Schema.Int })
const Media = Schema.Struct({ status: Schema.String, download_url: Schema.NullOr(Schema.String) })
const Validation = Schema.Struct({
  status: Schema.String,
  progress: Schema.Int,
  checked: Schema.Int,
  valid_count: Schema.Int,
  results: Schema.Array(Schema.Struct({ email: Schema.String, valid: Schema.Boolean })),
  unchecked: Schema.Array(Schema.String)
})
const Story = Schema.fromJsonString(
  Schema.Struct({
    outcome: Schema.String,
    hold: Schema.Struct({ amount: Schema.Finite }),
    ends: Schema.Array(Schema.Struct({ end: Schema.String, amount: Schema.Finite, reason: Schema.NullOr(Schema.String) }))
  })
)

const SPEECH = "/api/v1/audio/tts"
const VALIDATION = "/api/v1/email/validation-jobs"
const PER_PAGE = 100
/** As long as a text may be: it takes a while to read aloud. */
const TEXT = "A mill is a thousandth of a dollar. ".repeat(55)

test("jobs continue after kill -9, and a cancelled one is free", { timeout: 240_000 }, async () => {
  const { url: store } = newStore()
  const { account, key } = await openAccount(store, GRANTED)
  const names = await nameServer()
  const start = () => serve(["--store", store, "--speech", "espeak", "--dns-servers", names, "--job-lease", "10"], { env: UNLIMITED })
  let server = await start()
  const send = (path: string, options: Call = {}) => call(`${server.url}${path}`, { key, ...options })
  const post = (path: string, body: unknown) => send(path, { method: "POST", body: JSON.stringify(body) })
  const speak = async () => {
    const answer = await post(SPEECH, { text: TEXT })
    return { ...decoded(Created, answer), request: header(answer, "x-request-id") }
  }
  const mediaOf = async (id: string) => decoded(Media, await send(`${SPEECH}/${id}`))
  const validationOf = async (id: string, query = "") => decoded(Validation, await send(`${VALIDATION}/${id}${query}`))
  const pagesOf = async (id: string, count: number) => {
    const pages = Array.from({ length: count }, (_, i) => validationOf(id, `?page=${i + 1}&per_page=${PER_PAGE}`))
    return (await Promise.all(pages)).map(({ results }) => results)
  }
  const eventsOf = async (id: string) => (await readLog(store)).filter(({ stream }) => stream === `job-${id}`)
  const typesOf = async (id: string) => (await eventsOf(id)).map(({ type }) => type)
  const progressOf = async (id: string) =>
    (await eventsOf(id)).flatMap(({ data, type }) => (type === "JobProgressed" ? data["percent"] : []))
  /** Failsafe: the test's own time. */
  const until = async (isSo: () => Promise<boolean>) => {
    while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 100))
  }

  const emails = Array.from({ length: ADDRESSES }, (_, i) => `user${i}@town${i % DOMAINS}.mill`)
  const { job_id: validation, total_emails } = decoded(Begun, await post(VALIDATION, { emails }))
  expect(total_emails).toBe(ADDRESSES)

  // Its results can be read while it runs, as far as it got
  await until(async () => (await validationOf(validation)).checked >= 2 * PER_PAGE)
  const read = await pagesOf(validation, ADDRESSES / PER_PAGE)
  expect(await validationOf(validation)).toMatchObject({ status: "processing", unchecked: [] })
  expect([read[0]?.length, read[1]?.length, read.at(-1)?.length]).toEqual([PER_PAGE, PER_PAGE, 0])

  await until(async () => (await validationOf(validation)).progress >= 40)
  // One is read aloud at a time
  const spoken = await Promise.all([speak(), speak(), speak()])
  await server.kill()
  expect(await typesOf(validation)).not.toContain("JobSucceeded")
  const ends = await Promise.all(spoken.map(async ({ id }) => (await typesOf(id)).includes("JobSucceeded")))
  expect(ends).toContain(false)
  expect((await balanceOf(store, account)).held).toBeGreaterThanOrEqual(ADDRESSES * ADDRESS_PRICE + SPEECH_PRICE)
  const before = await progressOf(validation)

  // While those wait for what the dead server held of them, others are under way; the last of them is cancelled
  server = await start()
  const more = [await speak(), await speak()]
  const last = await speak()
  await until(async () => (await typesOf(last.id)).includes("JobStarted"))
  const cancelled = await send(`${SPEECH}/${last.id}`, { method: "DELETE" })
  expect([cancelled.status, JSON.parse(cancelled.body).data]).toEqual([200, { cancelled: true, job_id: last.id }])
  expect((await send(`${SPEECH}/${last.id}`)).status).toBe(404)
  const shown = await millrace(["charges", "show", "--request", last.request, "--store", store])
  expect(Schema.decodeUnknownSync(Story)(shown.stdout)).toEqual({
    outcome: "refunded",
    hold: { amount: SPEECH_PRICE },
    ends: [{ end: "refunded", amount: SPEECH_PRICE, reason: "cancelled" }]
  })

  await until(async () => (await validationOf(validation)).status !== "processing")
  for (const { id } of [...spoken, ...more]) await until(async () => (await mediaOf(id)).status !== "processing")

  // It went on where it was, and what was read of it before is as it was
  const after = await progressOf(validation)
  expect(after.slice(0, before.length)).toEqual(before)
  expect(after).toEqual([...new Set(after)].sort((a, b) => Number(a) - Number(b)))
  const whole = await validationOf(validation)
  expect(whole).toMatchObject({ status: "completed", progress: 100, checked: ADDRESSES, valid_count: ADDRESSES, unchecked: [] })
  const pages = await pagesOf(validation, ADDRESSES / PER_PAGE)
  expect(pages.slice(0, 2)).toEqual(read.slice(0, 2))
  expect(pages.flatMap((page) => page.map(({ email }) => email)).sort()).toEqual(emails.sort())

  for (const { id } of [...spoken, ...more]) {
    const { download_url, status } = await mediaOf(id)
    expect(status).toBe("completed")
    const file = await fetch(`${server.url}${download_url}`, { headers: { authorization: `Bearer ${key}` } })
    expect([file.status, file.headers.get("content-type")]).toEqual([200, "audio/mpeg"])
    const frames = framesOf(new Uint8Array(await file.arrayBuffer()))
    const seconds = (frames.length * SAMPLES_PER_FRAME) / (frames[0]?.sampleRate ?? 0)
    // As fast as one can speak, and sound in most of it
    expect(seconds).toBeGreaterThan(TEXT.length / 30)
    expect(frames.filter(({ soundBits }) => soundBits > 0).length).toBeGreaterThan(frames.length / 2)
  }

  await server.stop()
  const spent = ADDRESSES * ADDRESS_PRICE + (spoken.length + more.length) * SPEECH_PRICE
  expect(await balanceOf(store, account)).toMatchObject({ available: GRANTED - spent, held: 0, holds: [] })
  expect(await auditOf(store)).toMatchObject({ ok: true, problems: [] })
})

test("a server without runners accepts jobs for one that has them, and jobs are kept for the set time", {
  timeout: 120_000
}, async () => {
  const { url: store } = newStore()
  const { key } = await openAccount(store, GRANTED)
  const front = await serve(["--store", store, "--jobs", "0", "--job-retention", "48"], {
    env: { ...UNLIMITED, MILLRACE_SPEECH: "espeak" }
  })
  const answer = await call(`${front.url}${SPEECH}`, { key, method: "POST", body: JSON.stringify({ text: "One mill." }) })
  const { id } = decoded(Created, answer)
  const typesOf = async () => (await readLog(store)).filter(({ stream }) => stream === `job-${id}`).map(({ type }) => type)
  // Another job, which the same server was asked for later, has been accepted as well: it had the time to begin the first
  await call(`${front.url}${SPEECH}`, { key, method: "POST", body: JSON.stringify({ text: "Two mills." }) })
  expect(await typesOf()).toEqual(["JobAccepted"])

  const worker = await serve(["--store", store, "--speech", "espeak", "--port", "0"], { env: UNLIMITED })
  while (!(await typesOf()).includes("JobSucceeded")) await new Promise((resolve) => setTimeout(resolve, 100))
  await Promise.all([front.stop(), worker.stop()])
  const [ended] = (await readLog(store)).filter(({ stream, type }) => stream === `job-${id}` && type === "JobSucceeded")
  const hours = (Date.parse(String(ended?.data["retainUntil"])) - Date.parse(ended?.at ?? "")) / 3_600_000
  expect(Math.round(hours)).toBe(48)
})
