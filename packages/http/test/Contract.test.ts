/**
 * Twenty thousand requests made of the contract itself, good and bad, over real connections. Each is answered as the document says it may
 * be, none with 500; who gets a success pays for it just what it costs, and who gets none pays nothing.
 */
import { Agent, request as open } from "node:http"
import Ajv2020 from "ajv/dist/2020.js"
import addFormats from "ajv-formats"
import { Effect } from "effect"
import fc from "fast-check"
import { expect } from "vitest"
import { eventually, host, testing } from "./Host.ts"
import { type Json, type Request, requests } from "./Requests.ts"

const REQUESTS = 24_000
/** Sent together, over as many connections. */
const TOGETHER = 50

/** Thousandths a unit. What is not here is free. */
const PRICES: Readonly<Record<string, number>> = {
  "inbox.create": 1_000,
  "inbox.read": 100,
  "inbox.listMessages": 100,
  "inbox.readMessage": 100,
  "inbox.rotate": 1_000,
  "grammar.check": 1_000,
  "bin.lookup": 500,
  "dns.resolve": 500,
  "topics.list": 100,
  "coupons.search": 500,
  "priceAlerts.register": 1_000,
  "prices.compare": 1_000,
  "prices.history": 500,
  "email.validate": 1_000,
  "email.validateBatch": 600,
  "verification.wait": 5_000,
  "proxy.locations": 100,
  "proxy.createSession": 2_000,
  "storeCatalog.read": 1_500,
  "leads.search": 2_000,
  "codeHost.user": 500,
  "codeHost.searchRepositories": 500,
  "codeHost.activity": 500,
  "codeHost.repository": 500,
  "video.stats": 500,
  "video.channelVideos": 500,
  "video.outliers": 1_000,
  "video.search": 500,
  "video.comments": 1_000,
  "video.about": 500,
  "video.playlist": 300,
  "video.tags": 500,
  "video.details": 1_000,
  "video.download": 1_000,
  "test.work": 2_000
}

/** The same of jobs, whose charges the log counts. An answer that waited for the end of a job says what it was charged. */
const JOB_PRICES: Readonly<Record<string, number>> = {
  "email.validationJob": 600,
  "image.generate": 8_000,
  "image.edit": 8_000,
  "speech.synthesize": 5_000
}

/** Units of a success, by what was understood. */
const unitsOf = (operationId: string, { input }: Json): number =>
  operationId === "test.work" ? (input.times ?? 1) : operationId === "email.validateBatch" ? input.emails.length : 1

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly text: string
}

const send = (agent: Agent, port: number, { method, target, headers, body }: Request): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const outgoing = open(
      {
        agent,
        port,
        host: "127.0.0.1",
        method,
        path: target,
        headers: { ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }), ...headers },
        timeout: 10_000
      },
      (incoming) => {
        const chunks: Array<Buffer> = []
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
        incoming.once("error", reject)
        incoming.once("end", () =>
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text: Buffer.concat(chunks).toString() })
        )
      }
    )
    outgoing.once("timeout", () => outgoing.destroy(new Error("It hangs")))
    outgoing.once("error", reject)
    outgoing.end(body)
  })

testing(
  "any input gets an answer of the contract, and only successes are charged",
  Effect.gen(function* () {
    const rateLimit = { limit: 10_000_000, window: 60 }
    const sessions = { sessions: true, signInLimits: { address: rateLimit, client: rateLimit } }
    const hosts = yield* host({ rateLimit, authFailures: 1_000_000, bodyLimit: 50_000, ...sessions })
    const accounts = [yield* hosts.account(1_000_000), yield* hosts.account(1_000_000)]
    const document: Json = (yield* hosts.call("/api/v1/openapi.json")).json
    const operations = new Map<string, Json>(
      Object.values<Json>(document.paths).flatMap((item) =>
        Object.values<Json>(item).map((operation) => [operation.operationId, operation])
      )
    )
    const ajv = addFormats.default(new Ajv2020.default({ strict: false }))
    ajv.addSchema({ ...document, $id: "document" })
    const validators = new Map<string, (value: unknown) => boolean>()
    const validatorOf = (operationId: string, status: number) => {
      const name = `${operationId} ${status}`
      const known = validators.get(name)
      if (known !== undefined) return known
      const response = operations.get(operationId).responses[status]
      const { schema } = (response.$ref === undefined ? response : document.components.responses[`Error${status}`]).content[
        "application/json"
      ]
      const validator = ajv.compile(rooted(schema))
      validators.set(name, validator)
      return validator
    }

    let charged = 0
    let successes = 0
    const statuses: Record<number, number> = {}
    const check = (request: Request, { status, headers, text }: Answer) => {
      const { operationId } = request
      statuses[status] = (statuses[status] ?? 0) + 1
      expect(Object.keys(operations.get(operationId).responses)).toContain(String(status))
      expect(headers["x-request-id"]).toEqual(expect.any(String))
      const isMeant = operationId === "test.mispriced" || request.body?.includes('"throw"') === true
      if (!isMeant) expect(status).not.toBe(500)
      const body = JSON.parse(text)
      expect([text.slice(0, 300), validatorOf(operationId, status)(body)]).toEqual([text.slice(0, 300), true])
      const cost = headers["x-credits-charged"]
      const isBilled = (PRICES[operationId] ?? 0) > 0
      if (status >= 300) return expect(cost).toBeUndefined()
      const jobPrice = "prefer" in request.headers ? JOB_PRICES[operationId] : undefined
      if (jobPrice !== undefined)
        return expect(Number(cost ?? 0)).toBeLessThanOrEqual((jobPrice * (body.request.input.emails?.length ?? 1)) / 1_000)
      if (!isBilled) return expect(Number(cost ?? 0)).toBe(0)
      if (headers["idempotent-replayed"] === "true") return expect(cost).toBe("0")
      const due = (PRICES[operationId] ?? 0) * unitsOf(operationId, body.request)
      expect(Number(cost)).toBe(due / 1_000)
      charged += due
      successes++
    }

    yield* Effect.promise(async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: TOGETHER })
      const some = fc.array(
        requests(
          document,
          accounts.map(({ key }) => key)
        ),
        { minLength: TOGETHER, maxLength: TOGETHER, size: "max" }
      )
      await fc.assert(
        fc.asyncProperty(some, async (requests) => {
          // One of the test's own operations waits to be told
          const answers = await Promise.all(
            requests
              .filter(({ body }) => body?.includes('"when told"') !== true)
              .map(async (request) => ({ request, answer: await send(agent, hosts.port, request) }))
          )
          for (const { request, answer } of answers) {
            try {
              check(request, answer)
            } catch (cause) {
              throw new Error(`Answered with ${answer.status}: ${JSON.stringify(request).slice(0, 1_000)}`, { cause })
            }
          }
        }),
        {
          seed: 20_000,
          numRuns: REQUESTS / TOGETHER,
          endOnFailure: true,
          // Fifty requests at once are nothing to read: the one that failed is in the error
          reporter: ({ errorInstance }) => {
            if (errorInstance !== null) throw errorInstance
          }
        }
      )
      agent.destroy()
    })

    const sent = Object.values(statuses).reduce((sum, count) => sum + count, 0)
    expect(sent).toBeGreaterThan(REQUESTS * 0.95)
    // All ways to end were gone, and often enough to mean something
    for (const status of [200, 201, 401, 404, 413, 415, 422, 503]) expect([status, statuses[status]]).toEqual([status, expect.any(Number)])
    expect(successes).toBeGreaterThan(1_000)

    // Jobs go on, and are charged when they have succeeded
    const balances = yield* Effect.forEach(accounts, ({ accountId }) => eventually(hosts.balance(accountId), ({ held }) => held === 0))
    const jobs = new Set<string>()
    let ofJobs = 0
    let direct = 0
    for (const { type, data } of yield* hosts.log) {
      const event = JSON.parse(data)
      if (type === "CreditReserved" && event.jobId !== undefined) jobs.add(event.reservationId)
      if (type !== "OperationSucceeded") continue
      if (jobs.has(event.reservationId)) ofJobs += event.charged
      else direct++
    }
    expect(direct).toBe(successes)
    expect(jobs.size).toBeGreaterThan(50)
    expect(balances.reduce((sum, { available }) => sum + available, 0)).toBe(2_000_000_000 - charged - ofJobs)
  })
)

/** References of a schema that was taken out of the document lead back into it. */
const rooted = (schema: Json): Json => {
  if (typeof schema !== "object" || schema === null) return schema
  if (Array.isArray(schema)) return schema.map(rooted)
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, name === "$ref" ? `document${String(value)}` : rooted(value)])
  )
}
