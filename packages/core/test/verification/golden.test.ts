/** Messages and waits recorded by earlier releases, replayed: see `test/golden/addVerification.ts`. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Sms, Verification } from "@millrace/core"
import { describe, expect, test } from "vitest"
import { readLog } from "../ledger/Golden.ts"
import { encoded, replay } from "./Golden.ts"

const GOLDEN = new URL("../../../../test/golden/verification/", import.meta.url)

const goldens = readdirSync(fileURLToPath(GOLDEN)).map((name) => {
  const read = (file: string) => readFileSync(new URL(`${name}/${file}`, GOLDEN), "utf8")
  return { name, read, log: readLog(read("events.jsonl")) }
})

describe.each(goldens)("the golden $name", ({ log, read }) => {
  test("replays to the same state after every event", () => {
    expect(replay(log)).toBe(read("states.jsonl"))
  })

  test("is encoded to the same bytes", () => {
    expect(encoded(log)).toStrictEqual(log.map(({ data, type }) => ({ type, data })))
  })
})

test("the goldens contain every field of every event", () => {
  const sampled = new Set(
    goldens.flatMap(({ log }) =>
      log.flatMap(({ type, data }) => [type, ...Object.keys(JSON.parse(data)).map((field) => `${type}.${field}`)])
    )
  )
  const cases = { ...Sms.SmsEvent.cases, ...Verification.VerificationEvent.cases }
  const fields = Object.entries(cases).flatMap(([type, { fields }]) => [
    type,
    ...Object.keys(fields).flatMap((field) => (field === "_tag" ? [] : [`${type}.${field}`]))
  ])
  expect(fields.filter((field) => !sampled.has(field))).toStrictEqual([])
})
