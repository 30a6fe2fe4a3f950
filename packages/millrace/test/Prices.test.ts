/** Prices as an operator lists and publishes them, and what calls cost then. */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { beforeAll, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { ask, auditOf, BIN, call, header, newStore, openAccount, readLog, serve, UNLIMITED } from "../../../test/system/Server.ts"

const Listed = Schema.Array(
  Schema.Struct({
    version: Schema.Int,
    effectiveAt: Schema.String,
    inForce: Schema.Boolean,
    prices: Schema.Record(Schema.String, Schema.Finite)
  })
)

const Published = Schema.Struct({
  version: Schema.Int,
  effectiveAt: Schema.String,
  published: Schema.Boolean,
  changes: Schema.Array(Schema.Struct({ operation: Schema.String, from: Schema.NullOr(Schema.Finite), to: Schema.Finite }))
})

let store = { folder: "", file: "", url: "" }

const list = (...args: ReadonlyArray<string>) => ask(Listed, ["prices", "list", "--store", store.url, ...args])
const publish = (...args: ReadonlyArray<string>) => ask(Published, ["prices", "publish", "--store", store.url, ...args])

const refused = async (...args: ReadonlyArray<string>): Promise<string> => {
  const { code, stdout, stderr } = await millrace(["prices", "publish", "--store", store.url, ...args])
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
  const { error } = JSON.parse(stderr)
  expect(error.code).not.toBe("InternalError")
  return error.message
}

beforeAll(async () => {
  store = newStore()
  await openAccount(store.url, 100)
})

it("new prices apply to the next call of a running server, and to no call that is held already", { timeout: 60_000 }, async () => {
  const { key } = await openAccount(store.url, 100)
  const server = await serve(["--store", store.url], { env: UNLIMITED })
  const cost = async () => Number(header(await call(`${server.url}${BIN}`, { key }), "x-credits-charged"))
  const before = await list()
  expect(before.map(({ version, inForce }) => [version, inForce])).toEqual([[1, true]])
  expect(await cost()).toBe(0.5)
  const published = await publish("--set", "bin.lookup=0.125", "--set", "dns.resolve=0", "--by", "ada", "--reason", "cheaper")
  expect(published).toMatchObject({
    version: 2,
    published: true,
    changes: [
      { operation: "bin.lookup", from: 0.5, to: 0.125 },
      { operation: "dns.resolve", from: 0.5, to: 0 }
    ]
  })
  expect(await cost()).toBe(0.125)
  const [first, second] = await list()
  expect([first?.inForce, second?.inForce]).toEqual([false, true])
  expect(second?.prices).toEqual({ ...first?.prices, "bin.lookup": 0.125, "dns.resolve": 0 })
  expect(await list("--at", first?.effectiveAt ?? "")).toMatchObject([{ version: 1 }])
  expect((await readLog(store.url)).findLast(({ type }) => type === "PricePlanPublished")?.metadata).toMatchObject({
    actor: "ada",
    reason: "cheaper"
  })
  expect((await auditOf(store.url)).ok).toBe(true)
})

it("prices are published for a future time, also from a file, in the order of their times, and once", async () => {
  const file = join(store.folder, "prices.json")
  writeFileSync(file, JSON.stringify({ "email.validate": 0.9, "grammar.check": 2 }))
  const at = "2098-01-01T00:00:00.000Z"
  const ahead = await publish("--file", file, "--set", "grammar.check=3", "--effective-at", at)
  expect(ahead).toMatchObject({ effectiveAt: at, published: true })
  expect(ahead.changes.map(({ operation, to }) => [operation, to])).toEqual([
    ["email.validate", 0.9],
    ["grammar.check", 3]
  ])
  expect((await list("--at", at))[0]?.prices["grammar.check"]).toBe(3)
  expect((await list("--at", "2097-12-31T23:59:59.999Z"))[0]?.prices["grammar.check"]).toBe(1)
  expect((await list()).at(-1)).toMatchObject({ version: ahead.version, inForce: false })
  expect(await publish("--file", file, "--set", "grammar.check=3", "--effective-at", at)).toMatchObject({
    version: ahead.version,
    published: false,
    changes: []
  })
  expect(await refused("--set", "grammar.check=4")).toBe(
    `version ${ahead.version} comes into force at ${at}, and a later version cannot precede it: name a time by --effective-at`
  )
  expect(await refused("--set", "grammar.check=4", "--effective-at", "2097-01-01T00:00:00Z")).toBe(
    `prices cannot come into force before they are published, nor before those they follow: from ${at} on`
  )
  expect(await publish("--set", "text.shout=2", "--new-operations", "--effective-at", "2099-01-01T00:00:00Z")).toMatchObject({
    changes: [{ operation: "text.shout", from: null, to: 2 }]
  })
})

it("prices are refused when malformed or for an unknown operation, and nothing is written", async () => {
  const before = await readLog(store.url)
  const file = join(store.folder, "wrong.json")
  const inFile = async (text: string) => {
    writeFileSync(file, text)
    return refused("--file", file)
  }
  expect(await refused()).toMatch(/nothing to publish: name prices by --set or --file/u)
  expect(await refused("--set", "bin.lokup=0.5")).toMatch(/no operation here is called bin\.lokup/u)
  for (const price of ["0.0001", "-1", "1e3", "free", "", "9999999999999999"]) {
    expect(await refused("--set", `bin.lookup=${price}`)).toMatch(/bin\.lookup cannot cost .*at most three decimals/u)
  }
  expect(await refused("--set", "bin.lookup")).toMatch(/"bin\.lookup" sets no price/u)
  expect(await refused("--set", "bin.lookup=1", "--effective-at", "2020-01-01T00:00:00Z")).toMatch(/before they are published/u)
  expect(await inFile("prices")).toMatch(/wrong\.json holds no prices/u)
  expect(await inFile('{"bin.lookup":"1"}')).toMatch(/wrong\.json holds no prices/u)
  expect(await inFile('{"bin.lookup":0.00005}')).toMatch(/cannot cost/u)
  rmSync(file)
  expect(await refused("--file", file)).toMatch(/wrong\.json cannot be read/u)
  expect(await readLog(store.url)).toEqual(before)
})
