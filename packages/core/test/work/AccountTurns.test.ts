/** Turns in rotation between accounts: against what is promised of each of them, whoever comes, leaves and is done, in any order. */
import { Deferred } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { AccountTurns, type Turn } from "../../src/work/AccountTurns.ts"

interface Caller {
  readonly account: string
  readonly turn: Turn
  /** Callers of its account that waited when it came. */
  readonly ownBefore: number
  /** Accounts that had a turn since it came. */
  readonly since: Array<string>
}

const hasBegun = ({ turn }: Caller): boolean => Deferred.isDoneUnsafe(turn.begun)

/** A queue, with what its callers have seen of it. */
class Bench {
  readonly turns = new AccountTurns()
  /** In the order in which they came. */
  readonly waiting: Array<Caller> = []
  holder: Caller | undefined

  arrive(account: string): void {
    const isFree = this.holder === undefined
    const ownBefore = this.waiting.filter((other) => other.account === account).length
    const caller = { account, turn: this.turns.ask(account), ownBefore, since: [] }
    if (!isFree) this.waiting.push(caller)
    this.#settle(caller)
    expect(this.holder).toBeDefined()
  }

  leave(place: number): void {
    const [caller] = this.waiting.splice(place % Math.max(1, this.waiting.length), 1)
    if (caller !== undefined) this.turns.end(caller.turn)
  }

  release(): void {
    if (this.holder === undefined) return
    const { turn } = this.holder
    this.holder = undefined
    this.turns.end(turn)
    // A turn that has ended has nothing left to end
    this.turns.end(turn)
    const next = this.waiting.filter(hasBegun)
    // Never idle while somebody waits, and never two at a time
    expect(next).toHaveLength(Math.min(1, this.waiting.length))
    for (const caller of next) {
      // The callers of an account keep their order
      expect(this.waiting.find(({ account }) => account === caller.account)).toBe(caller)
      this.waiting.splice(this.waiting.indexOf(caller), 1)
      this.#settle(caller)
    }
  }

  #settle(caller: Caller): void {
    if (!hasBegun(caller)) return
    this.holder = caller
    for (const other of this.waiting) other.since.push(caller.account)
    for (const [account, turns] of Map.groupBy(caller.since, (account) => account))
      expect(turns.length).toBeLessThanOrEqual(caller.ownBefore + (account === caller.account ? 0 : 1))
  }
}

type Step =
  | { readonly _tag: "arrive"; readonly account: string }
  | { readonly _tag: "leave"; readonly place: number }
  | { readonly _tag: "release" }

const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ _tag: fc.constant("arrive" as const), account: fc.constantFrom("a", "a", "a", "b", "c") }) },
    { weight: 1, arbitrary: fc.record({ _tag: fc.constant("leave" as const), place: fc.nat(20) }) },
    { weight: 3, arbitrary: fc.record({ _tag: fc.constant("release" as const) }) }
  ),
  { maxLength: 60 }
)

const lived = (steps: ReadonlyArray<Step>): Bench => {
  const bench = new Bench()
  for (const step of steps) {
    if (step._tag === "arrive") bench.arrive(step.account)
    else if (step._tag === "leave") bench.leave(step.place)
    else bench.release()
  }
  return bench
}

describe("turns in rotation", () => {
  test("nobody waits for more than one turn of another account for each caller of its own, and none is lost", () => {
    fc.assert(
      fc.property(steps, (steps) => {
        const bench = lived(steps)
        for (let left = bench.waiting.length + 1; left > 0; left--) bench.release()
        expect([bench.waiting, bench.holder]).toEqual([[], undefined])
      }),
      { seed: 1, numRuns: 500 }
    )
  })

  test("a caller is told how many turns go before its own", () => {
    fc.assert(
      fc.property(steps, fc.constantFrom("a", "b", "d"), (steps, account) => {
        const bench = lived([{ _tag: "arrive", account: "z" }, ...steps])
        if (bench.holder === undefined) return
        const told = bench.turns.before(account)
        bench.arrive(account)
        const [caller] = bench.waiting.slice(-1)
        while (bench.holder !== caller) bench.release()
        // Itself is not counted, and those of its account are
        expect(caller?.since.length).toBeLessThanOrEqual(told)
        if (!steps.some(({ _tag }) => _tag === "release")) expect(caller?.since).toHaveLength(told)
      }),
      { seed: 1, numRuns: 500 }
    )
  })
})
