/** The list of an account's payments over HTTP: its own alone, in pages, and those that can still be paid. */
import { ManualGateway } from "@millrace/core"
import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect } from "vitest"
import { type Answer, host, testing } from "./Host.ts"

const PATH = "/api/v1/billing/topups"

interface TopUp {
  readonly payment_id: string
  readonly status: string
  readonly amount: number
  readonly instruction?: string
}

const dataOf = <A>({ json }: Answer) => (json as { readonly data: A }).data
const listIn = (answer: Answer) => dataOf<{ readonly topups: ReadonlyArray<TopUp> }>(answer).topups

type Fate = "left" | "approved" | "rejected"

const STATUS: Readonly<Record<Fate, string>> = { left: "pending", approved: "captured", rejected: "failed" }

interface Purchase {
  /** An account, from 0. */
  readonly who: number
  readonly pack: string
  readonly fate: Fate
}

const purchases: fc.Arbitrary<ReadonlyArray<Purchase>> = fc.array(
  fc.record({
    who: fc.nat({ max: 2 }),
    pack: fc.constantFrom("10", "25", "50"),
    fate: fc.constantFrom<Fate>("left", "approved", "rejected")
  }),
  { maxLength: 12 }
)

describe("the payments of an account", () => {
  testing(
    "are listed as a plain list has them, the newest first, whatever others buy",
    Effect.gen(function* () {
      const served = yield* host()
      const run = Effect.runPromiseWith(yield* Effect.context<never>())
      const settle = (payment: string, fate: Fate) =>
        served.run(
          ManualGateway.ManualPayments.use(({ approve, reject }) =>
            fate === "approved" ? approve(payment) : fate === "rejected" ? reject(payment) : Effect.void
          )
        )
      const lived = Effect.fnUntraced(function* (bought: ReadonlyArray<Purchase>, perPage: number) {
        const people = yield* Effect.forEach([1, 2, 3], () => served.account(1))
        const expected: ReadonlyArray<Array<readonly [string, string]>> = people.map(() => [])
        for (const { fate, pack, who } of bought) {
          const headers = people[who]?.bearer ?? {}
          const { payment_id } = dataOf<TopUp>(yield* served.call(PATH, { method: "POST", headers, body: { pack } }))
          yield* settle(payment_id, fate)
          yield* served.call(`${PATH}/${payment_id}/capture`, { method: "POST", headers, body: {} })
          expected[who]?.unshift([payment_id, STATUS[fate]])
        }
        for (const [who, { bearer: headers }] of people.entries()) {
          const all = expected[who] ?? []
          const shown: Array<readonly [string, string]> = []
          for (let page = 1; page <= Math.ceil(all.length / perPage) + 1; page++)
            for (const { payment_id, status } of listIn(yield* served.call(`${PATH}?page=${page}&per_page=${perPage}`, { headers })))
              shown.push([payment_id, status])
          expect(shown).toEqual(all)
          const open = listIn(yield* served.call(`${PATH}?open=true`, { headers }))
          expect(open.map(({ payment_id, status }) => [payment_id, status])).toEqual(all.filter(([, status]) => status === "pending"))
        }
      })
      const check = fc.asyncProperty(purchases, fc.integer({ min: 1, max: 4 }), (bought, perPage) => run(lived(bought, perPage)))
      yield* Effect.promise(() => fc.assert(check, { numRuns: 15 }))
    })
  )

  testing(
    "have what their payer needs when they are captured again, and no secret in the list",
    Effect.gen(function* () {
      const served = yield* host()
      const { bearer: headers } = yield* served.account(1)
      const first = dataOf<TopUp>(yield* served.call(PATH, { method: "POST", headers, body: { pack: "25" } }))
      const again = yield* served.call(`${PATH}/${first.payment_id}/capture`, { method: "POST", headers, body: {} })
      expect(dataOf<TopUp>(again)).toEqual(first)
      const [listed] = listIn(yield* served.call(PATH, { headers }))
      const { instruction: _, ...told } = first
      expect(listed).toEqual({ ...told, requested_at: expect.any(String), expires_at: expect.any(String) })
    })
  )

  testing(
    "need the scope of payments, and are not there where nothing takes any",
    Effect.gen(function* () {
      const served = yield* host({ gateway: null })
      const { bearer: headers } = yield* served.account(1)
      expect((yield* served.call(PATH, { headers })).json).toMatchObject({ error: { code: "upstream_not_configured" } })
      expect((yield* served.call(PATH)).status).toBe(401)
    })
  )
})
