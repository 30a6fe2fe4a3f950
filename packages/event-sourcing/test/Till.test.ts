/** The till's decisions as examples with `given`, `when` and `then`, and examples that must fail. */
import { Result } from "effect"
import { describe, expect, test } from "vitest"
import { at, given } from "../../testing/src/GivenWhenThen.ts"
import { empty, Full, LIMIT, pay, type TillEvent, till } from "./Till.ts"

const paid = (key: string, amount: number): TillEvent => ({ _tag: "Paid", key, amount })
const emptied: TillEvent = { _tag: "Emptied" }

test("a till accepts payments up to its limit", () => {
  given(till, [])
    .when(pay("1", LIMIT))
    .then([paid("1", LIMIT)])
    .thenState({ total: LIMIT, keys: ["1"], count: 1, lastAt: 0 })
  given(till, [paid("1", LIMIT - 5)])
    .when(pay("2", 3, 2))
    .thenRefused(new Full({ total: LIMIT - 5, count: 1 }))
    .thenState(({ total }) => expect(total).toBe(LIMIT - 5))
  given(till, [paid("1", LIMIT), emptied])
    .when(pay("2", LIMIT))
    .then([paid("2", LIMIT)])
})

test("a repeated command writes no events", () => {
  given(till, [paid("1", 5)])
    .when(pay("1", LIMIT))
    .then([])
  given(till, [paid("1", 5), emptied])
    .when(empty)
    .then([])
})

test("an event without a time has that of the event before it; a command without a time has that of the last event", () => {
  given(till, [at(5, paid("1", 1)), paid("2", 1)])
    .when((_, now) => Result.succeed([paid(`${now}`, 1)]))
    .then([paid("5", 1)])
    .thenState((state) => expect(state).toEqual({ total: 3, keys: ["1", "2", "5"], count: 3, lastAt: 5 }))
  given(till, [at(5, paid("1", 1))])
    .when(empty, 9)
    .thenState((state) => expect(state.lastAt).toBe(9))
})

describe("an example fails", () => {
  const example = () => given(till, [paid("1", 5)]).when(pay("2", 5))
  const refused = () => given(till, [paid("1", 5)]).when(pay("2", LIMIT))
  const failing: Record<string, readonly [message: string, run: () => unknown]> = {
    "when no event is expected": ["Other events follow", () => example().then([])],
    "when another event is expected": ["amount", () => example().then([paid("2", 6)])],
    "when more events are expected": ["Other events follow", () => example().then([paid("2", 5), paid("2", 5)])],
    "when the command was refused": ["it was refused", () => refused().then([paid("2", LIMIT)])],
    "when the command was not refused": ["it went through", () => example().thenRefused(new Full({ total: 5, count: 1 }))],
    "when the command was refused for another reason": ["another reason", () => refused().thenRefused(new Full({ total: 6, count: 1 }))],
    "when the state differs": ["Another state", () => example().thenState({ total: 5, keys: ["1", "2"], count: 2, lastAt: 0 })],
    "when the check of the state throws": ["mine", () => example().thenState(() => expect.unreachable("mine"))]
  }
  for (const [name, [message, run]] of Object.entries(failing)) test(name, () => expect(run).toThrow(message))

  test("when a given or an expected event cannot be encoded", () => {
    expect(() => given(till, [paid("1", 0.5)])).toThrow()
    expect(() =>
      given(till, [])
        .when(pay("1", 0.5))
        .then([paid("1", 0.5)])
    ).toThrow()
  })

  test("to compile when it is awaited before its end: the result of `then` has no `then`", () => {
    expect(example().then([paid("2", 5)])).not.toHaveProperty("then")
  })
})
