/** The ledger beside its oracle, over thousands of scripts. `MILLRACE_SOAK` multiplies the runs. */
import { Account, AccountEvent, AccountSnapshot, Decisions } from "@millrace/core"
import { Equal, Schema } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type Step, script } from "../../../testing/src/Arbitraries.ts"
import { invariants } from "../../../testing/src/Invariants.ts"
import * as OracleLedger from "../../../testing/src/OracleLedger.ts"
import { Book, fold, viewOf } from "./Replay.ts"

const SOAK = Math.max(1, Number(process.env["MILLRACE_SOAK"] ?? 1))

/** Nobody asks for an attempt under a key whose reply was just found. */
const wouldBeAsked = ({ command }: Step, oracle: OracleLedger.OracleLedger): boolean => {
  const key = "call" in command ? command.call.key : undefined
  return key === undefined || !oracle.replied(key.hash, key.lookedUpAt)
}

const roundTrip = (account: Account.Account): Account.Account => {
  const { state } = AccountSnapshot.accountSnapshots
  return Schema.decodeUnknownSync(state)(JSON.parse(JSON.stringify(Schema.encodeSync(state)(account))))
}

describe("the ledger and its oracle", () => {
  test("agree after every command and at every instant between", () => {
    const events = new Set<string>()
    const refusals = new Set<string>()
    fc.assert(
      fc.property(script(), fc.nat(6), (steps, phase) => {
        const oracle = OracleLedger.make()
        const book = new Book()
        let before = steps[0]?.at ?? 0
        for (const [i, step] of steps.entries()) {
          const { at, command } = step
          // Asleep between commands, the ledger still knows what the oracle lived through
          for (const between of [before + (at - before) / 3, before + ((at - before) * 2) / 3, at].map(Math.floor)) {
            expect(viewOf(book.account, between)).toStrictEqual(oracle.view(between))
          }
          before = at
          if (!wouldBeAsked(step, oracle)) continue
          const refused = oracle.tell(command, at)
          const written = book.log.length
          const error = book.tell(command, at)
          if (refused.length === 0) expect(error).toBeUndefined()
          else expect(refused).toContain(error)
          if (error !== undefined) {
            refusals.add(error)
            expect(book.log.length).toBe(written)
          }
          expect(viewOf(book.account, at)).toStrictEqual(oracle.view(at))
          if (i % 7 === phase) {
            const restored = roundTrip(book.account)
            expect(Equal.equals(restored, book.account)).toBe(true)
            book.account = restored
          }
        }
        expect(Equal.equals(fold(book.log), book.account)).toBe(true)
        for (const { event } of book.log) events.add(event._tag)
        const violations = invariants(book.log.map((logged) => ({ stream: "account-1", ...logged })))
        expect(violations).toStrictEqual([])
      }),
      { numRuns: 3_000 * SOAK, seed: 1 }
    )
    // No event and no refusal that the scripts never led to
    expect(Object.keys(AccountEvent.cases).filter((tag) => !events.has(tag))).toStrictEqual([])
    const tags = Object.entries(Decisions).flatMap(([name, value]) => (value.prototype instanceof Error ? [name] : []))
    expect(tags.filter((tag) => !refusals.has(tag))).toStrictEqual([])
  })
})
