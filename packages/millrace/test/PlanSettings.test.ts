/** Plans as operators give them: JSON, or a file with it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { plans } from "../src/PlanSettings.ts"

const STANDARD = { plan: "standard", amount: 1_950, currency: "USD", credits: 25_000_500, every: "month" }
const JSON_TEXT = '{"standard":{"price":19.5,"credits":25000.5,"period":"month"}}'

test("plans are JSON or a file, and keep their order", () => {
  expect(plans.parse(JSON_TEXT)).toEqual([STANDARD])
  const two = '{"b":{"price":1,"credits":1,"period":"day"},"a":{"price":2,"credits":2,"period":"year"}}'
  expect(plans.parse(two)?.map(({ plan }) => plan)).toEqual(["b", "a"])
  const folder = mkdtempSync(join(tmpdir(), "millrace-plans-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, "plans.json")
  writeFileSync(file, JSON_TEXT)
  expect(plans.parse(file)).toEqual([STANDARD])
})

test.each([
  ["nothing", "{}"],
  ["no JSON", "{standard"],
  ["a file that is not there", "/nowhere/plans.json"],
  ["a price below a dollar", '{"a":{"price":0.5,"credits":1,"period":"month"}}'],
  ["a price of parts of a cent", '{"a":{"price":1.005,"credits":1,"period":"month"}}'],
  ["no credits", '{"a":{"price":1,"credits":0,"period":"month"}}'],
  ["an unknown period", '{"a":{"price":1,"credits":1,"period":"fortnight"}}'],
  ["an unknown field", '{"a":{"price":1,"credits":1,"period":"month","bonus":1}}'],
  ["a name with spaces", '{"a b":{"price":1,"credits":1,"period":"month"}}']
])("plans are refused with %s", (_, text) => {
  expect(plans.parse(text)).toBeUndefined()
})
