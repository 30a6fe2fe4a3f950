/** Accounts recorded by earlier releases, replayed: see `test/golden/add.ts`. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Account, AccountEvent, AccountSnapshot } from "@millrace/core"
import { describe, expect, test } from "vitest"
import { invariants } from "../../../testing/src/Invariants.ts"
import { fieldsIn, fieldsOf, readLog } from "../golden/Recorded.ts"
import { decodeLog, replay } from "./Golden.ts"

const GOLDEN = new URL("../../../../test/golden/account/", import.meta.url)

const goldens = readdirSync(fileURLToPath(GOLDEN)).map((name) => {
  const read = (file: string) => readFileSync(new URL(`${name}/${file}`, GOLDEN), "utf8")
  return { name, read, log: readLog(read("events.jsonl")) }
})

describe.each(goldens)("the golden account $name", ({ log, read }) => {
  test("is readable, with a valid hash chain", () => {
    expect(decodeLog(log)).toHaveLength(log.length)
  })

  test("replays to the same balances after every event", () => {
    expect(replay(log).balances).toBe(read("balances.jsonl"))
  })

  test("replays to the same postings", () => {
    expect(replay(log).postings).toBe(read("postings.jsonl"))
  })

  test("replays to the same state, byte for byte", () => {
    expect(replay(log).state).toBe(read(`state.v${AccountSnapshot.VERSION}.json`))
  })

  test("satisfies the invariants", () => {
    expect(
      invariants(decodeLog(log).map(({ line, at, event }) => ({ stream: line.stream, revision: line.revision, at, event })))
    ).toStrictEqual([])
  })

  test("is encoded to the same bytes, unless an earlier version wrote it", () => {
    const { codec } = Account.Account
    for (const { line, event } of decodeLog(log)) {
      if (!codec.upcastTypes.has(line.type)) expect(codec.encode(event)).toStrictEqual({ type: line.type, data: line.data })
    }
  })

  test("detects any change", () => {
    const last = log.length - 1
    const changed = log.map((line, i) => (i === last ? { ...line, data: line.data.replace("{", "{ ") } : line))
    expect(() => decodeLog(changed)).toThrow("hash chain")
    expect(() => decodeLog(log.toSpliced(1, 1))).toThrow("is missing")
  })
})

describe("the golden accounts", () => {
  const samples = goldens.flatMap(({ log }) => log)

  test("contain every event type in every version", () => {
    const types = [...Object.keys(AccountEvent.cases), ...Account.Account.codec.upcastTypes]
    const sampled = new Set(samples.map(({ type }) => type))
    expect(types.filter((type) => !sampled.has(type))).toStrictEqual([])
  })

  test("contain every field of every event", () => {
    const sampled = fieldsIn(samples)
    expect(fieldsOf(AccountEvent.cases).filter((field) => !sampled.has(field))).toStrictEqual([])
  })
})
