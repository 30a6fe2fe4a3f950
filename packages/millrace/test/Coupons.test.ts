/** `millrace coupons` beside a running server: what operators decide, callers see, also after a restart and without the search's file. */
import { existsSync, rmSync } from "node:fs"
import { Schema } from "effect"
import { expect, test } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { auditOf, call, newStore, openAccount, serve, UNLIMITED } from "../../../test/system/Server.ts"

const Answer = Schema.Struct({ data: Schema.Struct({ total_coupons: Schema.Int, store_name: Schema.NullOr(Schema.String) }) })
const Submitted = Schema.Struct({ data: Schema.Struct({ coupon_id: Schema.String, status: Schema.String }) })
const Listed = Schema.Array(Schema.Struct({ coupon: Schema.String, domain: Schema.String, confirmations: Schema.Int }))

test("coupons are listed, accepted, rejected and found, and the search is derived again where its file is gone", {
  timeout: 60_000
}, async () => {
  const store = newStore()
  const search = store.file.replace(/\.db$/u, ".search.db")
  const run = async (...args: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await millrace(["coupons", ...args, "--store", store.url])
    expect([code, stderr]).toEqual([0, ""])
    return JSON.parse(stdout)
  }
  let server = await serve(["--store", store.url], { env: UNLIMITED })
  const { key } = await openAccount(store.url, 100)
  const submit = async (body: object) => {
    const answer = await call(`${server.url}/api/v1/coupons/submit`, { method: "POST", key, body: JSON.stringify(body) })
    expect(answer.status).toBe(200)
    return Schema.decodeUnknownSync(Submitted)(JSON.parse(answer.body)).data
  }
  const found = async (query: string) => {
    const answer = await call(`${server.url}/api/v1/coupons?${query}`, { key })
    expect(answer.status).toBe(200)
    return Schema.decodeUnknownSync(Answer)(JSON.parse(answer.body)).data
  }
  /** What another process decided is found soon, not at once. */
  const finds = (query: string, total: number) =>
    expect.poll(async () => (await found(query)).total_coupons, { timeout: 10_000 }).toBe(total)

  const first = await submit({ domain: "www.Shop.example.com", code: "save 20", worked: true })
  const second = await submit({ domain: "shop.example.com", code: "OTHER" })
  expect([first.status, second.status]).toEqual(["pending", "pending"])
  const pending = Schema.decodeUnknownSync(Listed)(await run("list"))
  expect(pending.map(({ coupon }) => coupon).sort()).toEqual([first.coupon_id, second.coupon_id].sort())
  expect(await run("accept", first.coupon_id, "--by", "grace")).toMatchObject({ status: "accepted", domain: "shop.example.com" })
  expect(await run("reject", second.coupon_id, "--why", "No code of this shop")).toMatchObject({ status: "rejected" })
  expect(await run("shop", "shop.example.com", "--name", "Zoë’s Shoes", "--cashback", "1-2.5")).toMatchObject({ name: "Zoë’s Shoes" })
  expect(await run("list")).toEqual([])
  await finds("url=https://shop.example.com/p/7", 1)
  await expect.poll(() => found("store=zoes+shoes"), { timeout: 10_000 }).toMatchObject({ total_coupons: 0 })
  await expect.poll(() => found("store=zo%C3%AB"), { timeout: 10_000 }).toMatchObject({ total_coupons: 1, store_name: "Zoë’s Shoes" })

  await server.stop()
  expect(existsSync(search)).toBe(true)
  for (const end of ["", "-wal", "-shm"]) rmSync(`${search}${end}`, { force: true })
  server = await serve(["--store", store.url, "--coupon-acceptance", "0"], { env: UNLIMITED })
  await finds("domain=shop.example.com", 1)
  expect((await submit({ domain: "shop.example.com", code: "AT ONCE" })).status).toBe("accepted")
  await finds("domain=shop.example.com", 2)

  const unknown = await millrace(["coupons", "accept", "cpn_none", "--store", store.url])
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("no coupon cpn_none")])
  await server.stop()
  expect((await auditOf(store.url)).problems).toEqual([])
})
