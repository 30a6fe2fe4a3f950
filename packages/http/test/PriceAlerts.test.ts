/** Price alerts over HTTP: what a call costs and answers, and the page that ends an alert. */
import { type OutgoingMail, PriceAlerts, PriceObservations, Registration } from "@millrace/core"
import { Effect } from "effect"
import { expect } from "vitest"
import { eventually, type Host, host, PUBLIC_URL, testing } from "./Host.ts"

const PATH = "/api/v1/products/price-alerts"
const MUG = "https://shop.example.com/products/mug"
const BODY = { url: MUG, name: "Blue mug", price: 24.95, target_price: 20, consent: true }
const verifiedAccount = Effect.fnUntraced(function* (at: Host) {
  const account = yield* at.account()
  yield* at.run(Registration.use(({ verify }) => verify(account.accountId)))
  return account
})

const post = (at: Host, headers: Readonly<Record<string, string>>, body: object) => at.call(PATH, { method: "POST", headers, body })

const read = (at: Host, price: string) =>
  at.run(PriceObservations.use(({ record }) => record([{ names: [{ url: MUG }], price, currency: null }])))

const typesOf = (at: Host) =>
  Effect.map(at.log, (log) => log.filter(({ stream }) => stream.startsWith("priceAlert-")).map(({ type }) => type))

testing(
  "an alert is accepted, answered alike under one key, and told by mail",
  Effect.gen(function* () {
    const alertMails: Array<OutgoingMail> = []
    const at = yield* host({ alertMails })
    const { bearer } = yield* verifiedAccount(at)
    yield* read(at, "24.95")
    const headers = { ...bearer, "idempotency-key": "alert-1" }
    const first = yield* post(at, headers, BODY)
    const again = yield* post(at, headers, BODY)
    expect([first.status, first.headers["x-credits-charged"]]).toEqual([202, "1"])
    expect([again.status, again.headers["x-credits-charged"], again.headers["idempotent-replayed"]]).toEqual([202, "0", "true"])
    expect(again.json).toEqual(first.json)
    const { data } = first.json as { readonly data: Readonly<Record<string, unknown>> }
    expect(data).toEqual({
      alert_id: expect.stringMatching(/^alert_[\w-]{43}$/u),
      status: "accepted",
      product_base_id: expect.stringMatching(/^[\w-]{43}$/u),
      target_price: 20,
      current_price: 24.95,
      unsubscribe_url: expect.stringMatching(/^https:\/\/api\.example\.com\/price-alerts\/end\?token=[\w-]{43}\.[\w-]{43}$/u)
    })
    expect(yield* typesOf(at)).toEqual(["PriceAlertRegistered"])
    yield* read(at, "20")
    yield* eventually(
      Effect.sync(() => alertMails.length),
      (mails) => mails === 1
    )
    expect(alertMails[0]?.unsubscribe).toBe(data["unsubscribe_url"])
  })
)

testing(
  "what cannot be registered costs nothing, and names why",
  Effect.gen(function* () {
    const at = yield* host({ alertMails: [] })
    const account = yield* verifiedAccount(at)
    const refused: ReadonlyArray<readonly [object, string]> = [
      [{ consent: false }, "consent"],
      [{ consent: undefined }, "consent"],
      [{ target_price: -1 }, "target_price"],
      [{ target_price: 1.1234567 }, "target_price"],
      [{ target_price: 1e15 }, "target_price"],
      [{ price: 0.0000001 }, "price"],
      [{ url: "ftp://shop.example.com/mug" }, "url"]
    ]
    for (const [change, field] of refused) {
      const { json, status } = yield* post(at, account.bearer, { ...BODY, ...change })
      expect([field, status, json]).toMatchObject([
        field,
        422,
        { error: { code: "invalid_request", message: expect.stringContaining(field) } }
      ])
    }
    const unverified = yield* at.account()
    const { json, status } = yield* post(at, unverified.bearer, BODY)
    expect([status, json]).toMatchObject([403, { error: { code: "address_not_verified" } }])
    const without = yield* host()
    const other = yield* verifiedAccount(without)
    const answer = yield* post(without, other.bearer, BODY)
    expect([answer.status, answer.json]).toMatchObject([503, { error: { code: "upstream_not_configured" } }])
    for (const each of [at, without]) expect((yield* each.log).filter(({ type }) => type === "CreditReserved")).toEqual([])
    const listed = yield* without.call("/api/v1/catalog/capabilities/priceAlerts.register")
    expect(listed.body).toContain("price alerts")
  })
)

testing(
  "the page ends an alert by its button, or a mail program by POST; to look at it, or a wrong token, ends nothing",
  Effect.gen(function* () {
    const at = yield* host({ alertMails: [] })
    const { accountId, bearer } = yield* verifiedAccount(at)
    const { json } = yield* post(at, bearer, BODY)
    const { data } = json as { readonly data: { readonly unsubscribe_url: string } }
    const path = data.unsubscribe_url.slice(PUBLIC_URL.length)
    const shown = yield* at.call(path)
    expect([shown.status, shown.headers["content-type"], shown.headers["cache-control"]]).toEqual([
      200,
      "text/html; charset=utf-8",
      "no-store"
    ])
    expect(shown.headers["content-security-policy"]).toContain("default-src 'none'")
    expect(shown.body).toContain('<form method="post">')
    expect(shown.body).not.toMatch(/<script|Blue mug|shop\.example\.com/u)
    for (const wrong of ["/price-alerts/end", `${path}x`, path.replace(/\.[\w-]+$/u, ""), `${path}&token=x`])
      for (const method of ["GET", "POST"]) expect([wrong, (yield* at.call(wrong, { method })).status]).toEqual([wrong, 404])
    expect((yield* at.call(path, { method: "DELETE" })).status).toBe(405)
    expect(yield* typesOf(at)).toEqual(["PriceAlertRegistered"])
    // As RFC 8058 has it, and again
    for (const _ of [1, 2]) {
      const ended = yield* at.call(path, {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: "List-Unsubscribe=One-Click"
      })
      expect([ended.status, ended.body]).toEqual([200, expect.stringContaining("has ended")])
    }
    expect(yield* typesOf(at)).toEqual(["PriceAlertRegistered", "PriceAlertEnded"])
    const token = path.split(".").at(-1) ?? "none"
    expect(at.lines.join("\n")).not.toContain(token)
    expect(at.lines.join("\n")).toContain("/price-alerts/end")
    expect(JSON.stringify(yield* at.log)).not.toContain(token)
    // The page of an erased account's alert still answers
    yield* at.run(Registration.use(({ erase }) => erase(accountId)))
    expect((yield* at.call(path, { method: "POST" })).status).toBe(200)
    expect(yield* at.run(PriceAlerts.use(({ isToken }) => Effect.sync(() => isToken(path.split("=").at(-1) ?? ""))))).toBe(true)
  })
)
