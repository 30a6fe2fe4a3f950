/** Accounts of a host without Effect: named by the host's own ids, opened, granted credits, changed, found. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createMillrace, type Host } from "../../src/index.ts"

let millrace: Host
beforeAll(async () => {
  millrace = await createMillrace({ store: "memory:", log: {}, operations: [] })
})
afterAll(() => millrace.close())

describe("an account that is named by the host's own id", () => {
  it("is opened once, however often it is asked for, and needs no address", async () => {
    const accounts = await Promise.all(Array.from({ length: 8 }, () => millrace.accounts.open({ id: "user 1" })))
    expect(new Set(accounts).size).toBe(1)
    expect(await millrace.accounts.show("user 1")).toMatchObject({ account: accounts[0], id: "user 1", email: null, status: "opened" })
  })

  it("takes the host's id wherever it takes its own", async () => {
    const account = await millrace.accounts.open({ id: "user 2", email: "two@example.com" })
    await millrace.credits.grant("user 2", { amount: 10, source: "promotion" })
    const { key } = await millrace.keys.issue("user 2", { label: "laptop" })
    expect(await millrace.keys.authenticate(key)).toMatchObject({ account })
    expect(await millrace.keys.list("user 2")).toMatchObject([{ label: "laptop", revokedAt: null }])
    expect(await millrace.balance("user 2")).toMatchObject({ account, available: 10 })
    expect(await millrace.accounts.suspend("user 2", { by: "ada", reason: "ticket 12" })).toMatchObject({ status: "suspended" })
    expect(await millrace.accounts.find({ id: "user 2" })).toBe(account)
    expect(await millrace.accounts.find({ email: "TWO@example.com" })).toBe(account)
    expect(await millrace.accounts.find({ id: "user 99" })).toBeUndefined()
  })

  it("refuses a name that another account has, and an account that is not there", async () => {
    await millrace.accounts.open({ id: "user 3", email: "three@example.com" })
    await expect(millrace.accounts.open({ id: "user 3", email: "four@example.com" })).rejects.toMatchObject({ code: "reference_taken" })
    await expect(millrace.accounts.open({ id: "user 4", email: "three@example.com" })).rejects.toMatchObject({ code: "email_taken" })
    await expect(millrace.balance("user 99")).rejects.toMatchObject({ code: "account_not_found" })
    await expect(millrace.accounts.open({ id: "acc_1" })).rejects.toMatchObject({ code: "invalid_reference" })
  })
})

describe("a threshold", () => {
  it("is set, shown and removed, and says at once whether the balance is low", async () => {
    const account = await millrace.accounts.open({ id: "user 5" })
    await millrace.credits.grant("user 5", { amount: 10, source: "promotion" })
    const amounts = { account, available: 10, held: 0 }
    expect(await millrace.accounts.threshold("user 5", 2.5)).toEqual({ ...amounts, threshold: 2.5, low: false })
    expect(await millrace.accounts.threshold("user 5", 11)).toEqual({ ...amounts, threshold: 11, low: true })
    expect(await millrace.accounts.show("user 5")).toMatchObject({ threshold: 11 })
    expect(await millrace.balance("user 5")).toMatchObject({ threshold: 11 })
    expect(await millrace.accounts.threshold("user 5", null, { by: "ada" })).toEqual({ ...amounts, threshold: null, low: false })
    await expect(millrace.accounts.threshold("user 5", -1)).rejects.toMatchObject({ code: "invalid_amount" })
    await expect(millrace.accounts.threshold("user 99", 1)).rejects.toMatchObject({ code: "account_not_found" })
  })
})

describe("a recurring grant", () => {
  it("grants its first lot, is listed and shown, and is stopped", async () => {
    await millrace.accounts.open({ id: "user 6" })
    const started = await millrace.credits.grant("user 6", { amount: 2.5, source: "promotion", every: "month", expires: "never" })
    expect(started).toMatchObject({ balance: 2.5, grant: expect.stringMatching(/^grant_/u), next: expect.any(Date) })
    const listed = await millrace.credits.recurring("user 6")
    expect(listed).toMatchObject([{ grant: started.grant, amount: 2.5, every: "month", expires: "never", until: null, next: started.next }])
    expect(await millrace.balance("user 6")).toMatchObject({ recurring: listed, lots: [{ lot: started.lot, expiresAt: null }] })
    await millrace.credits.stop("user 6", started.grant, { by: "ada" })
    expect(await millrace.credits.recurring("user 6")).toEqual([])
    expect(await millrace.balance("user 6")).toMatchObject({ available: 2.5 })
    await expect(millrace.credits.stop("user 6", started.grant)).rejects.toMatchObject({ code: "recurring_grant_not_found" })
  })

  it("expires with the next one by default, and is refused in a sentence where it makes no sense", async () => {
    await millrace.accounts.open({ id: "user 8" })
    const { next } = await millrace.credits.grant("user 8", { amount: 1, source: "adjustment", every: "week" })
    expect((await millrace.balance("user 8")).lots).toMatchObject([{ expiresAt: next }])
    const wrong: ReadonlyArray<readonly [grant: object, sentence: string]> = [
      [{ every: "hour" }, "not every hour"],
      [{ source: "topup" }, "reference of a payment for each lot"],
      [{ source: "subscription", paymentRef: "pay_1" }, "reference of a payment for each lot"],
      [{ source: "signup" }, "not as signup"],
      [{ expires: "soon" }, "not soon"],
      [{ expiresAt: new Date(Date.now() + 1e6) }, "expires, not expiresAt"],
      [{ until: new Date(0) }, "lies in the past"],
      [{ amount: 0 }, "amount is 0: give a number of credits, above 0"]
    ]
    for (const [more, sentence] of wrong) {
      const grant = { amount: 1, source: "promotion", every: "day", ...more } as never
      await expect(millrace.credits.grant("user 8", grant), sentence).rejects.toThrow(sentence)
    }
  })
})

describe("credits", () => {
  it("are granted once for a payment, and taken back with it", async () => {
    const account = await millrace.accounts.open({ id: "payer" })
    const grant = { amount: 25.5, source: "topup", paymentRef: "pi_1" } as const
    const { lot } = await millrace.credits.grant(account, grant)
    expect(await millrace.credits.grant(account, grant)).toMatchObject({ lot, balance: 25.5 })
    await expect(millrace.credits.grant("user 1", grant)).rejects.toMatchObject({ code: "payment_used", accountId: account })
    expect(await millrace.credits.clawBack(lot)).toMatchObject({ clawedBack: 25.5, balance: 0 })
  })

  it("expire when the grant says, and cannot expire in the past", async () => {
    const expiresAt = new Date(Date.now() + 3_600_000)
    await millrace.credits.grant("user 1", { amount: 1, source: "promotion", expiresAt })
    expect((await millrace.balance("user 1")).lots).toMatchObject([{ remaining: 1, expiresAt }])
    await expect(millrace.credits.grant("user 1", { amount: 1, source: "promotion", expiresAt: new Date(0) })).rejects.toThrow(
      "in the past"
    )
    await expect(millrace.credits.grant("user 1", { amount: 0.0001, source: "promotion" })).rejects.toMatchObject({
      code: "invalid_amount"
    })
  })
})
