/** Inboxes and addresses recorded by earlier releases, replayed: see `test/golden/addInbox.ts`. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Inbox } from "@millrace/core"
import { describe, expect, test } from "vitest"
import { readLog } from "../ledger/Golden.ts"
import { lines, replay } from "./Golden.ts"

const goldens = ["inbox", "address"].flatMap((category) => {
  const folder = new URL(`../../../../test/golden/${category}/`, import.meta.url)
  return readdirSync(fileURLToPath(folder)).map((name) => {
    const read = (file: string) => readFileSync(new URL(`${name}/${file}`, folder), "utf8")
    return { name: `${category} ${name}`, read, log: readLog(read("events.jsonl")) }
  })
})

describe.each(goldens)("the golden $name", ({ log, read }) => {
  test("replays to the same state after every event", () => {
    expect(replay(log)).toBe(read("states.jsonl"))
  })

  test("is encoded to the same bytes", () => {
    for (const { encoded, line } of lines(log)) expect(encoded).toStrictEqual({ type: line.type, data: line.data })
  })
})

test("the goldens contain every field of every event", () => {
  const sampled = new Set(
    goldens.flatMap(({ log }) =>
      log.flatMap(({ type, data }) => [type, ...Object.keys(JSON.parse(data)).map((field) => `${type}.${field}`)])
    )
  )
  const fields = Object.entries(Inbox.InboxEvent.cases).flatMap(([type, { fields }]) => [
    type,
    ...Object.keys(fields).flatMap((field) => (field === "_tag" ? [] : [`${type}.${field}`]))
  ])
  expect([...fields, "AddressClaimed", "AddressClaimed.inboxId"].filter((field) => !sampled.has(field))).toStrictEqual([])
})
