/** Mistakes of callers in JavaScript: each is told in a sentence, at once. */
import { Effect, Option } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { z } from "zod"
import * as ErasureRegister from "../../src/ErasureRegister.ts"
import { assertNode } from "../../src/host/Mistakes.ts"
import { charging, createMillrace, type Host, job, operation } from "../../src/index.ts"
import * as SettingNames from "../../src/SettingNames.ts"

const given = { summary: "Work", price: 1, route: { method: "GET", path: "/x" }, run: () => ({}) }
const call = { ...given, success: z.object({}) }
const jobGiven = { ...given, result: z.object({}) }
const name = z.object({ name: z.string() })

describe.each([
  ["operation", operation, call, "success"],
  ["job", job, jobGiven, "result"]
] as const)("%s", (_, define, given, outcome) => {
  it.each([
    [["greet", given], 'The operation "greet" needs a key of an area and a name'],
    [["a.b"], 'The operation "a.b" needs its options'],
    [["a.b", { ...given, summary: "" }], "needs a summary"],
    [["a.b", { ...given, run: undefined }], "needs run, the function that does its work; it is undefined"],
    [["a.b", { ...given, route: undefined }], "needs a route"],
    [["a.b", { ...given, route: { method: "FETCH", path: "/x" } }], 'has the method "FETCH"; give GET, POST'],
    [["a.b", { ...given, route: { method: "GET", path: "x" } }], 'has the path "x"; give one that begins with a slash'],
    [
      ["a.b", { ...given, route: { method: "GET", path: "/x/{name}" } }],
      'has the path "/x/{name}"; each part of it is a text or a parameter'
    ],
    [["a.b", { ...given, route: { method: "GET", path: "/x/*" } }], 'has the path "/x/*"'],
    [["a.b", { ...given, route: { method: "GET", path: "/x", body: name } }], "has a body, which GET requests have not"],
    [["a.b", { ...given, route: { method: "POST", path: "/x", bodySchema: name } }], "The option bodySchema of the route does not exist"],
    [["a.b", { ...given, route: { method: "POST", path: "/x", query: name, body: name } }], "has the field name in query and in body"],
    [["a.b", { ...given, [outcome]: undefined }], `The operation "a.b" needs ${outcome}, the schema of its result`],
    [["a.b", { ...given, [outcome]: "text" }], 'the result of "a.b" is not a schema'],
    [["a.b", { ...given, timeOut: 3 }], 'The option timeOut of the operation "a.b" does not exist; there are summary, description, price'],
    [["a.b", { ...given, timeout: "3 seconds" }], 'The option timeout of the operation "a.b" is "3 seconds": give milliseconds'],
    [["a.b", { ...given, quantity: 3 }], 'The option quantity of the operation "a.b" is 3: give a function of the input'],
    [["a.b", { ...given, secret: "password" }], 'is "password": give an array of names of fields'],
    [["a.b", { ...given, secret: ["password"] }], "has the secret field password, and no field of that name"],
    [["a.b", { ...given, price: "1.5" }], 'The price of "a.b" is "1.5": give credits']
  ])("refuses %j", (args, sentence) => {
    expect(() => (define as (...args: ReadonlyArray<unknown>) => unknown)(...args)).toThrow(sentence)
  })
})

it("refuses a job whose path has a parameter, and files that are no list", () => {
  const define = job as unknown as (key: string, options: object) => unknown
  const route = { method: "POST", path: "/x/:name", params: name }
  expect(() => define("a.b", { ...jobGiven, route })).toThrow("is a job, and its path has a parameter: give it by the body or the query")
  expect(() => define("a.b", { ...jobGiven, files: "text/plain" })).toThrow(
    'The option files of the operation "a.b" is "text/plain": give an array'
  )
})

describe("createMillrace", () => {
  const create = createMillrace as (options?: unknown) => Promise<unknown>
  it.each([
    [{ masterkey: "5a".repeat(32) }, "The option masterkey of createMillrace does not exist; there are store, masterKey"],
    [{ masterKey: 5 }, "The option masterKey of createMillrace is 5: give 32 bytes as 64 hexadecimal digits, or a layer"],
    [{ jobs: "four" }, 'The option jobs of createMillrace is "four": give a whole number'],
    [{ jobs: -1 }, "The option jobs of createMillrace is -1"],
    [{ jobLease: 0 }, "The option jobLease of createMillrace is 0: give seconds, a number above 0"],
    [{ cluster: {} }, "The option cluster of createMillrace needs address"],
    [
      { cluster: { address: "0.0.0.0:7400" } },
      'The option address of cluster is "0.0.0.0:7400": give an address of this machine or of a private network'
    ],
    [{ jobRetention: -1 }, "The option jobRetention of createMillrace is -1: give hours"],
    [{ grace: -1 }, "The option grace of createMillrace is -1: give seconds"],
    [{ rateLimit: 60 }, "The option rateLimit of createMillrace is 60: give an object with limit, window"],
    [{ rateLimit: { limit: 0, window: 60 } }, "The option limit of rateLimit is 0: give a whole number of at least 1"],
    [{ breaker: { failures: 2.5 } }, "The option failures of breaker is 2.5"],
    [{ late: "maybe" }, 'The option late of createMillrace is "maybe": give "withhold" or "charge"'],
    [{ log: true }, "The option log of createMillrace is true: give an object with functions"],
    [{ corsOrigins: "https://example.com" }, 'The option corsOrigins of createMillrace is "https://example.com": give an array'],
    [{ corsOrigins: ["example.com"] }, "The option corsOrigins of createMillrace is an array: give an array such as"],
    [{ blobs: 3 }, "The option blobs of createMillrace is 3: give a folder"],
    [{ webhooks: true }, "The option webhooks of createMillrace is true: give an object with deliver, allowPrivate"],
    [{ webhooks: { timeLimit: "soon" } }, 'The option timeLimit of webhooks is "soon": give milliseconds, or words such as "5 seconds"'],
    [{ webhooks: { pauses: ["soon"] } }, "The option pauses of webhooks is an array: give an array of milliseconds"],
    [
      { api: { licence: { name: "MIT" } } },
      "The option licence of api does not exist; there are title, version, description, contact, license"
    ],
    [{ providers: { speach: "espeak" } }, "The option speach of providers does not exist; there are speech, speechKey"],
    [{ money: { name: "token" } }, "The option name of money does not exist; there are credit, credits, value"],
    [{ signUpCredits: "200" }, 'The option signUpCredits of createMillrace is "200": give a number of credits']
  ])("refuses the option %j", async (options, sentence) => {
    const refused = create({ store: "memory:", operations: [], ...options })
    await expect(refused).rejects.toMatchObject({ code: "invalid_argument", message: expect.stringContaining(sentence) })
  })

  it.each([
    [undefined, "needs its options"],
    [{ operations: [] }, "needs a store"],
    [{ store: "memory:" }, "needs operations"],
    [{ store: "memory:", operations: [given] }, "neither operation() nor job() made"],
    [{ store: "postgres://localhost/none", operations: [] }, "needs the option masterKey or MILLRACE_MASTER_KEY"],
    [{ store: "kurrentdb://localhost", operations: [] }, "a place for what must be deletable: the option state,"],
    [
      { store: "postgres://localhost/none", masterKey: "5a".repeat(32), state: "sqlite:x.db", operations: [] },
      "The option state is for a log"
    ]
  ])("refuses %j", async (options, sentence) => {
    await expect(create(options)).rejects.toThrow(sentence)
  })
})

describe("a host", () => {
  let host: Host
  const work = operation("a.b", { ...call, route: { method: "GET", path: "/x" } as const })
  beforeAll(async () => {
    host = await createMillrace({ store: "memory:", log: {}, operations: [work] })
    await host.accounts.open({ id: "u" })
  })
  afterAll(() => host.close())

  const stranger = operation("a.c", { ...call, route: { method: "GET", path: "/y" } as const })
  const theJob = job("a.d", { ...jobGiven, route: { method: "POST", path: "/z" } as const })
  // Callers in JavaScript: nothing checks what they give
  type Untyped = (...given: ReadonlyArray<unknown>) => Promise<unknown>
  const untyped = <A>(act: A) => act as unknown as Untyped

  it.each<[string, (host: Host) => Promise<unknown>, string]>([
    ["run without its options", (host) => untyped(host.run)(work, {}), 'A call of "a.b" needs the account that pays'],
    ["run of nothing", (host) => untyped(host.run)({}, {}, { account: "u" }), "run needs what operation() or job() made"],
    ["run of a stranger", (host) => host.run(stranger, {}, { account: "u" }), 'The operation "a.c" is not one of this host: give it to'],
    [
      "an empty key",
      (host) => host.run(work, {}, { account: "u", idempotencyKey: "" }),
      'idempotencyKey of the call of "a.b" is "": give a text'
    ],
    ["a numeric key", (host) => untyped(host.run)(work, {}, { account: "u", idempotencyKey: 7 }), "is 7: give a text that names this call"],
    [
      "a misspelt key",
      (host) => untyped(host.run)(work, {}, { account: "u", idempotencykey: "k" }),
      "The option idempotencykey of the call"
    ],
    ["open with nothing", (host) => untyped(host.accounts.open)(), "accounts.open needs an object with id, email"],
    ["open without a name", (host) => host.accounts.open({}), "accounts.open needs an id, an email, or both"],
    [
      "open with a number",
      (host) => untyped(host.accounts.open)({ id: 7 }),
      "The option id of accounts.open is 7: give a text, such as String(user.id)"
    ],
    ["find with nothing", (host) => untyped(host.accounts.find)(), "accounts.find needs an object"],
    ["grant of nothing", (host) => untyped(host.credits.grant)("u"), "credits.grant needs an object with amount, source"],
    [
      "a grant until a text",
      (host) => untyped(host.credits.grant)("u", { amount: 1, source: "promotion", expiresAt: "2027-01-01" }),
      'The option expiresAt of credits.grant is "2027-01-01": give a Date'
    ],
    [
      "a grant until no date",
      (host) => host.credits.grant("u", { amount: 1, source: "promotion", expiresAt: new Date("never") }),
      "is an invalid date: give a Date"
    ],
    ["a balance at a text", (host) => untyped(host.balance)("u", { at: "now" }), 'The option at of balance is "now": give a Date'],
    [
      "a job by its id alone",
      (host) => untyped(host.jobs.read)("job_1"),
      "jobs.read needs what job() made: jobs.read(job, id, { account })"
    ],
    ["a job of nobody", (host) => untyped(host.jobs.wait)(theJob, "job_1"), "jobs.wait needs the account whose job it is"],
    ["a misspelt notice", (host) => untyped(host.on)("job.endet", () => {}), 'There is no notice "job.endet": give "account.opened" or'],
    [
      "a notice without a handler",
      (host) => untyped(host.on)("job.ended"),
      'on needs a handler of "job.ended": a function; it is undefined'
    ],
    ["a webhook of nothing", (host) => untyped(host.webhooks.add)(), "webhooks.add needs an object with url, on"],
    ["a backup of nothing", (host) => untyped(host.backup)(), "backup needs an object with to, keysLifetime"]
  ])("refuses %s", async (_, act, sentence) => {
    await expect(act(host)).rejects.toMatchObject({ code: "invalid_argument", message: expect.stringContaining(sentence) })
  })

  it("refuses an account by its number, and a journal in no format", async () => {
    const sentence = "An account is named by a text, acc_... or the host's own id such as String(user.id); it is 7"
    for (const act of [untyped(host.balance), untyped(host.accounts.show), untyped(host.accounts.close)])
      await expect(act(7)).rejects.toThrow(sentence)
    const journal = host.journal("xml" as "csv")[Symbol.asyncIterator]()
    const message = expect.stringContaining('is "xml": give "hledger" or')
    await expect(journal.next()).rejects.toMatchObject({ code: "invalid_argument", message })
  })

  it.each([2, -1, 0.5])("names an operation that charges %s of one unit", async (quantity) => {
    const route = { method: "GET", path: "/x" } as const
    const over = operation("a.over", { ...call, price: 0, route, run: () => charging(quantity, {}) })
    const owner = await createMillrace({ store: "memory:", log: {}, operations: [over] })
    await owner.accounts.open({ id: "u" })
    const message = `The operation a.over is faulty: it charges ${quantity} of 1 held: give a whole number of units, at most as many as were held`
    await expect(owner.run(over, {}, { account: "u" })).rejects.toMatchObject({ code: "operation_failed", message })
    await owner.close()
  })

  it("refuses amounts that are none, and says which", async () => {
    const grant = (amount: unknown) => untyped(host.credits.grant)("u", { amount, source: "promotion" })
    const refusal = { name: "MillraceError", code: "invalid_amount", argument: "amount" }
    await expect(grant("200")).rejects.toMatchObject({ ...refusal, message: expect.stringContaining('amount is "200": give a number') })
    await expect(grant(0)).rejects.toMatchObject({
      ...refusal,
      message: expect.stringContaining("amount is 0: give a number of credits, above 0")
    })
    expect((await host.balance("u")).lots).toEqual([])
  })

  it("refuses a grant without its payment, and prices that would wait", async () => {
    await expect(host.credits.grant("u", { amount: 1, source: "topup" } as never)).rejects.toMatchObject({
      code: "refused",
      message: "Credits granted as topup need the reference of a payment"
    })
    await expect(host.credits.grant("u", { amount: 1, source: "gift" } as never)).rejects.toThrow("and not as gift")
    await host.prices.publish({ "a.b": 2 }, { effectiveAt: new Date("2999-01-01") })
    await expect(host.prices.publish({ "a.b": 3 })).rejects.toThrow("cannot precede it: name a time by the option effectiveAt")
  })

  it("is refused by a Node.js that is too old", () => {
    for (const old of ["18.20.8", "20.20.2", "22.18.0"])
      expect(() => assertNode(old)).toThrow(`Millrace needs Node.js 22.19 or newer; this is ${old}`)
    for (const now of ["22.19.0", "24.0.0", "26.1.0-nightly"]) assertNode(now)
  })

  it("that is closed says so", async () => {
    const closed = await createMillrace({ store: "memory:", log: {}, operations: [work] })
    await closed.close()
    await closed.close()
    await expect(closed.run(work, {}, { account: "u" })).rejects.toMatchObject({ code: "closed" })
    await expect(closed.on("job.ended", () => {})).rejects.toMatchObject({ code: "closed" })
  })

  it("that erases on a store without a folder is asked for the option erasures", async () => {
    const needed = ErasureRegister.needed("postgres://localhost/none", Option.none())
    const named = Effect.provideService(needed, SettingNames.Current, SettingNames.OPTIONS)
    await expect(Effect.runPromise(named)).rejects.toThrow(/written down, by the option erasures$/u)
  })
})
