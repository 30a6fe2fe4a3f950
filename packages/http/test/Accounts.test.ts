/** Two accounts beside each other: whatever one of them does, on every route, the other neither sees it nor pays for it. */
import { Effect, Schema } from "effect"
import { expect } from "vitest"
import type { Api } from "../src/index.ts"
import { type Answer, api, type Host, host, testing } from "./Host.ts"

/** An operation as its own example calls it. */
const callOf = ({ route, example }: Api.Api<Api.Groups>["operations"][number]) => {
  const fields: Readonly<Record<string, Schema.Codec<unknown, unknown>>> = { ...route.params, ...route.query, ...route.body }
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(Schema.Struct(fields)))
  const sent = Object.entries(Object.keys(fields).length === 0 ? {} : Object(encode(example?.input)))
  const pick = (part: object): ReadonlyArray<readonly [string, unknown]> => sent.filter(([name]) => name in part)
  const values = new Map(sent)
  const path = route.path.replaceAll(/:(\w+)/gu, (_, name: string) => encodeURIComponent(String(values.get(name))))
  const query = new URLSearchParams(pick(route.query).map(([name, value]): [string, string] => [name, String(value)]))
  const body = pick(route.body)
  return { path: `/api/v1${path}?${query}`, method: route.method, ...(body.length === 0 ? {} : { body: Object.fromEntries(body) }) }
}

/**
 * Those that need no more than a usual key: a job, and what is asked of one, of an inbox, of a payment, an
 * invoice, a subscription or of keys, has tests of its own.
 */
const keyed = Object.values(api.groups).flatMap(({ operations, scope }) =>
  scope === undefined || scope === "keys"
    ? []
    : operations.filter(
        ({ _tag, example, route }) =>
          example !== undefined &&
          _tag !== "Job" &&
          !["job", "inbox", "payment", "invoice", "subscription"].some((resource) => resource in route.params)
      )
)

const requestIdOf = ({ json }: Answer): string =>
  Schema.decodeUnknownSync(Schema.Struct({ request: Schema.Struct({ id: Schema.String }) }))(json).request.id

const billing = ({ call }: Host, bearer: Record<string, string>) =>
  Effect.map(call("/api/v1/account/billing", { headers: bearer }), ({ json }) => json)

for (const operation of keyed) {
  testing(
    `${operation.key}: two accounts may use the same idempotency key for the same call`,
    Effect.gen(function* () {
      const hosts = yield* host({ alertMails: [], verified: true })
      const [ours, theirs] = [yield* hosts.account(100), yield* hosts.account(50)]
      const call = callOf(operation)
      const send = (bearer: Record<string, string>) =>
        hosts.call(call.path, { ...call, headers: { ...bearer, "idempotency-key": "the-same" } })

      const first = yield* send(ours.bearer)
      expect([first.status, first.body]).toEqual([operation.route.status, first.body])
      const before = yield* billing(hosts, theirs.bearer)
      expect(before).toMatchObject({ data: { balance: 50, held: 0, usage: { calls: 0, operations: [] } } })

      const second = yield* send(theirs.bearer)
      expect(second.status).toBe(operation.route.status)
      expect(second.headers["idempotent-replayed"]).toBeUndefined()
      expect(requestIdOf(second)).not.toBe(requestIdOf(first))
      const price = Number(second.headers["x-credits-charged"])
      expect(Number(second.headers["x-credits-balance"])).toBe((50_000 - price * 1_000) / 1_000)

      // And each gets back what it got, and nothing else
      for (const [account, answer] of [
        [ours, first],
        [theirs, second]
      ] as const) {
        const again = yield* send(account.bearer)
        if (price === 0) continue
        expect(again.body).toBe(answer.body)
        expect(again.headers["idempotent-replayed"]).toBe("true")
      }
      const text = JSON.stringify(yield* billing(hosts, theirs.bearer))
      expect(text).not.toContain(ours.accountId)
      expect(yield* billing(hosts, ours.bearer)).toMatchObject({ data: { balance: (100_000 - price * 1_000) / 1_000 } })
    })
  )
}
