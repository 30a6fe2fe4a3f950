/** A process is killed while it takes a payment. Whoever starts next grants what was paid for, once. */
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"
import { auditOf, call, newStore, openAccount, Process, readLog, serve, UNLIMITED } from "./Server.ts"

const script = fileURLToPath(new URL("PayingProcess.ts", import.meta.url))

const PAID = 10_000

/** A payment that was requested at a server, which has stopped since. */
const requested = async () => {
  const { file, url: store } = newStore()
  const args = ["--store", store, "--payments", "manual"]
  const server = await serve(args, { env: UNLIMITED })
  const { account, key } = await openAccount(store, 1)
  const { body } = await call(`${server.url}/api/v1/billing/topups`, { method: "POST", key, body: "{}" })
  await server.stop()
  return { store, file, args, account, key, payment: String(JSON.parse(body).data.payment_id) }
}

type Requested = Awaited<ReturnType<typeof requested>>

/** Approves the payment in a process that dies right after such an event. */
const dyingAfter = async (type: string, { file, payment }: Requested): Promise<void> => {
  const nodeArgs = ["--conditions=@millrace/source"]
  const { code } = await new Process([file, payment, type], { script, nodeArgs, env: UNLIMITED }).ended
  expect(code).toBe(null)
}

const typesIn = async (store: string): Promise<ReadonlyArray<string>> => (await readLog(store)).map(({ type }) => type)

/** How many of the lots in the log were paid for. */
const grantsIn = async (store: string): Promise<number> =>
  (await readLog(store)).filter(({ data, type }) => type === "CreditsGranted" && data["source"] === "topup").length

/** Starts servers, each killed as well once the credits are there; then the log has one grant, and passes an audit. */
const grantsOnce = async ({ args, key, payment, store }: Requested, isAsked: boolean): Promise<void> => {
  for (let round = 0; round < 2; round++) {
    const server = await serve(args, { env: UNLIMITED })
    const capture = () => call(`${server.url}/api/v1/billing/topups/${payment}/capture`, { method: "POST", key, body: "{}" })
    if (isAsked) expect(JSON.parse((await capture()).body).data.status).toBe("captured")
    const balance = async () => JSON.parse((await call(`${server.url}/api/v1/account/billing`, { key })).body).data.balance
    await expect.poll(balance, { timeout: 20_000 }).toBe(PAID + 1)
    await server.kill()
  }
  expect(await grantsIn(store)).toBe(1)
  expect((await typesIn(store)).filter((type) => type === "PaymentCaptured")).toHaveLength(1)
  expect((await auditOf(store)).problems).toEqual([])
}

describe("a process that takes a payment is killed", () => {
  test("between the capture and the grant: the next server grants, and nobody has to ask", { timeout: 120_000 }, async () => {
    const paid = await requested()
    await dyingAfter("PaymentCaptured", paid)
    expect((await typesIn(paid.store)).at(-1)).toBe("PaymentCaptured")
    expect(await grantsIn(paid.store)).toBe(0)
    await grantsOnce(paid, false)
  })

  test("before the capture: the owner's next call captures and grants", { timeout: 120_000 }, async () => {
    const paid = await requested()
    await dyingAfter("ManualPaymentApproved", paid)
    expect(await typesIn(paid.store)).not.toContain("PaymentCaptured")
    await grantsOnce(paid, true)
  })

  test("after the grant, before it could say so: nothing is granted again", { timeout: 120_000 }, async () => {
    const paid = await requested()
    await dyingAfter("CreditsGranted", paid)
    expect(await grantsIn(paid.store)).toBe(1)
    await grantsOnce(paid, true)
  })
})
