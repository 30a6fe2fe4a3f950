/** What a host without Effect is told of a subscription, from its first period to its end. */
import { afterEach, expect, it, vi } from "vitest"
import { createMillrace, type Host, type NoticeName } from "../../src/index.ts"

const DAY = 24 * 3_600_000

let host: Host | undefined
afterEach(async () => {
  vi.restoreAllMocks()
  await host?.close()
})

it("tells that a subscription started, was past due, was renewed, and ended", async () => {
  let passed = 0
  const { now } = Date
  vi.spyOn(Date, "now").mockImplementation(() => now.call(Date) + passed)
  const plans = { daily: { price: 3, credits: 3_000, period: "day" } } as const
  const millrace = await createMillrace({ store: "memory:", log: {}, standard: ["billing"], payments: { gateway: "manual", plans } })
  host = millrace
  const account = await millrace.accounts.open({ id: "ada" })
  const { key } = await millrace.keys.issue("ada", { scopes: ["read", "operations", "billing"] })
  const request = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { "content-type": "application/json" }) }
    const asked = new Request(`http://localhost/api/v1/billing${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return JSON.parse(await (await millrace.fetch(asked)).text()).data
  }
  const heard: Array<object> = []
  const names = ["subscription.started", "subscription.past_due", "subscription.renewed", "subscription.ended"] as const
  for (const name of names satisfies ReadonlyArray<NoticeName>) await millrace.on(name, (notice) => void heard.push(notice))

  const { payment_id: first, subscription_id: subscription } = await request("POST", "/subscriptions", { plan: "daily" })
  const pay = async (payment: string) => {
    await millrace.payments.approve(payment)
    expect(await request("POST", `/topups/${payment}/capture`)).toMatchObject({ status: "captured" })
  }
  await pay(first)
  const told = { account, subscription, plan: "daily" }
  await expect
    .poll(() => heard, { timeout: 10_000 })
    .toEqual([expect.objectContaining({ ...told, name: "subscription.started", payment: first })])
  const { current_period_end: until } = (await request("GET", "/subscriptions")).subscriptions[0]
  expect(heard[0]).toMatchObject({ until })
  const after = (days: number) => new Date(Date.parse(until) + days * DAY).toISOString()

  passed = DAY + 1_000
  const { payment_id: second } = await request("POST", "/subscriptions", { plan: "daily" })
  expect(second).not.toBe(first)
  await expect.poll(() => heard, { timeout: 10_000 }).toHaveLength(2)
  expect(heard[1]).toMatchObject({
    ...told,
    name: "subscription.past_due",
    payment: second,
    graceUntil: after(7)
  })

  await pay(second)
  await expect.poll(() => heard, { timeout: 10_000 }).toHaveLength(3)
  expect(heard[2]).toMatchObject({ ...told, name: "subscription.renewed", payment: second, until: after(1) })

  await request("DELETE", `/subscriptions/${subscription}?now=true`)
  await expect.poll(() => heard, { timeout: 10_000 }).toHaveLength(4)
  expect(heard[3]).toMatchObject({ name: "subscription.ended", account, subscription, reason: "canceled" })
  expect((await millrace.audit()).problems).toEqual([])
})
