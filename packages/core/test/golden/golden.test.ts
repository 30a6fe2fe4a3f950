/** Streams recorded by earlier releases, replayed: see `test/golden/addStream.ts`. Accounts have more to say: `ledger/golden.test.ts`. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"
import { fieldsIn, fieldsOf, readLog } from "./Recorded.ts"
import { kinds, replay } from "./Streams.ts"

const goldensOf = (category: string) => {
  const folder = new URL(`../../../../test/golden/${category}/`, import.meta.url)
  return readdirSync(fileURLToPath(folder)).map((name) => {
    const linesOf = (file: string) => readFileSync(new URL(`${name}/${file}`, folder), "utf8")
    return { name, log: readLog(linesOf("events.jsonl")), states: linesOf("states.jsonl") }
  })
}

describe.each(kinds)("the golden streams of $category", ({ cases, category }) => {
  const goldens = goldensOf(category)

  test.each(goldens)("$name: replays to the same state after every event", ({ log, states }) => {
    const lines = states.trimEnd().split("\n")
    expect(replay(log).map(({ state }) => JSON.parse(JSON.stringify(state)))).toStrictEqual(lines.map((line) => JSON.parse(line)))
  })

  test.each(goldens)("$name: is encoded to the same bytes", ({ log }) => {
    expect(replay(log).map(({ encoded }) => encoded)).toStrictEqual(log.map(({ data, type }) => ({ type, data })))
  })

  test("contain every field of every event", () => {
    const sampled = fieldsIn(goldens.flatMap(({ log }) => log))
    expect(fieldsOf(cases).filter((field) => !sampled.has(field))).toStrictEqual([])
  })
})
