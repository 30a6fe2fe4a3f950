/** What a host without Effect is told while it runs, also of what another host on the store does. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { z } from "zod"
import { createMillrace, type Host, job, type Notice, type NoticeName } from "../../src/index.ts"

const print = job("report.print", {
  summary: "Print a report",
  price: 1,
  route: { method: "POST", path: "/reports", body: z.object({ fails: z.boolean() }) },
  result: z.object({}),
  attempts: 1,
  run: ({ fails }) => {
    if (fails) throw new Error("out of paper")
    return {}
  }
})

let folder: string
let one: Host
let other: Host
const logged: Array<string> = []
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "millrace-notices-"))
  const store = `sqlite:${folder}/millrace.db`
  one = await createMillrace({ store, operations: [print], log: { error: (text) => logged.push(text) } })
  other = await createMillrace({ store, operations: [print], log: {}, jobs: 0 })
})
afterAll(async () => {
  await Promise.all([one.close(), other.close()])
  rmSync(folder, { recursive: true, force: true })
})

const heard: Array<Notice<NoticeName>> = []
const note = (notice: Notice<NoticeName>) => void heard.push(notice)

it("tells what happens to accounts, credits and jobs, in the order of the log, until it is told to stop", async () => {
  const names = ["account.opened", "credits.granted", "charge.refunded", "job.ended", "account.closed"] as const
  const offs = await Promise.all(names.map((name) => one.on(name, note)))
  const account = await other.accounts.open({ id: "user-7" })
  const { lot } = await other.credits.grant("user-7", { amount: 10, source: "promotion" })
  for (const fails of [false, true]) {
    const { data } = await other.run(print, { fails }, { account, requestId: `request-${fails}` })
    await one.jobs.wait(print, data.id, { account })
  }
  const [charge] = await one.charges.show("request-false")
  await other.credits.refund(charge?.reservation ?? "", { amount: 0.5 })
  await other.accounts.close("user-7")
  await expect.poll(() => heard.length, { timeout: 10_000 }).toBe(6)
  expect(heard).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ name: "account.opened", account }),
      expect.objectContaining({ name: "credits.granted", account, lot, amount: 10, source: "promotion" }),
      expect.objectContaining({ name: "job.ended", account, operation: "report.print", request: "request-false", status: "succeeded" }),
      expect.objectContaining({ name: "job.ended", account, request: "request-true", status: "failed" }),
      expect.objectContaining({ name: "charge.refunded", account, amount: 0.5, reason: "goodwill" }),
      expect.objectContaining({ name: "account.closed", account, at: expect.any(Date) })
    ])
  )
  for (const off of offs) await off()
  await other.accounts.open({ id: "user-8" })
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(heard).toHaveLength(6)
})

it("logs what a handler throws, and tells the next notice all the same", async () => {
  const accounts: Array<string> = []
  const off = await one.on("account.opened", async ({ account }) => {
    accounts.push(account)
    if (accounts.length === 1) throw new Error("not now")
  })
  const opened = [await one.accounts.open({ id: "user-9" }), await one.accounts.open({ id: "user-10" })]
  await expect.poll(() => accounts).toEqual(opened)
  expect(logged).toContain("A handler of account.opened failed")
  await off()
})
