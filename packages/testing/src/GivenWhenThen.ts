/**
 * Examples of a decider: given these events, when this command is decided, then these events follow.
 *
 * ```ts
 * given(Till, [at(1_000, opened), { _tag: "Paid", amount: 3 }])
 *   .when(pay(5), 2_000)
 *   .then([{ _tag: "Paid", amount: 5 }])
 *   .thenState({ total: 8 })
 * ```
 *
 * It works with any test runner: a wrong expectation throws an `AssertionError` of `node:assert`.
 */
import assert, { AssertionError } from "node:assert/strict"
import { inspect } from "node:util"
import type { Decide, Decider } from "@millrace/event-sourcing"
import { Equal, Result } from "effect"

/** An event, and when it was decided: milliseconds since 1970. */
export interface Dated<Event> {
  readonly at: number
  readonly event: Event
}

export const at = <Event extends { readonly _tag: string }>(instant: number, event: Event): Dated<Event> => ({ at: instant, event })

export interface Given<State, Event> {
  /** `now`: milliseconds since 1970, by default the time of the last event. */
  readonly when: <E>(decide: Decide<State, Event, E>, now?: number) => When<State, Event, E>
}

export interface When<State, Event, E> {
  /** Expects exactly these events; none if the command was already done. */
  readonly then: (events: ReadonlyArray<Event>) => Then<State>
  readonly thenRefused: (error: E) => Then<State>
  readonly thenState: Then<State>["thenState"]
}

export interface Then<State> {
  /** Expects this state after the new events. A function checks the state instead, and throws if it is wrong. */
  readonly thenState: (expected: State | ((state: State) => void)) => Then<State>
}

/**
 * An event without a time happened at the time of the event before it, the first at 0. Given and new events pass through the decider's
 * codec, so an event that cannot be written and read again fails the example.
 */
export const given = <State, Event extends { readonly _tag: string }>(
  decider: Decider<State, Event>,
  events: ReadonlyArray<Event | Dated<Event>>
): Given<State, Event> => {
  const { codec } = decider
  const logged = (event: Event): Event => {
    const { type, data } = codec.encode(event)
    return codec.decode(type, data)
  }
  let now = 0
  let before = decider.initial
  for (const given of events) {
    const dated = "event" in given ? given : { at: now, event: given }
    now = dated.at
    before = decider.evolve(before, logged(dated.event), now)
  }
  return { when: (decide, instant = now) => outcome(decider, logged, before, decide, instant) }
}

const outcome = <State, Event extends { readonly _tag: string }, E>(
  decider: Decider<State, Event>,
  logged: (event: Event) => Event,
  before: State,
  decide: Decide<State, Event, E>,
  now: number
): When<State, Event, E> => {
  const decision = decide(before, now)
  const thenState: Then<State>["thenState"] = (expected) => {
    const events = Result.isSuccess(decision) ? decision.success : []
    const after = events.reduce((state, event) => decider.evolve(state, logged(event), now), before)
    if (isCheck(expected)) expected(after)
    else same(thenState, "Another state", after, expected)
    return { thenState }
  }
  const then: When<State, Event, E>["then"] = (expected) => {
    if (Result.isFailure(decision)) throw unlike(then, "Expected events, but it was refused", decision.failure, expected)
    same(then, "Other events follow", decision.success, expected)
    same(then, "An event is read back from the log as another", decision.success.map(logged), decision.success)
    return { thenState }
  }
  const thenRefused: When<State, Event, E>["thenRefused"] = (expected) => {
    if (Result.isSuccess(decision)) throw unlike(thenRefused, "Expected a refusal, but it went through", decision.success, expected)
    same(thenRefused, "Refused, but for another reason", decision.failure, expected)
    return { thenState }
  }
  // Only an unfinished example is a thenable; awaiting it fails
  return { then, thenRefused, thenState }
}

const isCheck = <State>(expected: State | ((state: State) => void)): expected is (state: State) => void => typeof expected === "function"

const failure = (caller: Function, message: string, actual: unknown, expected: unknown) =>
  new AssertionError({ message, actual, expected, operator: "deepStrictEqual", stackStartFn: caller })

const unlike = (caller: Function, what: string, actual: unknown, expected: unknown) => {
  const [is, due] = [inspect(actual, { depth: 6 }), inspect(expected, { depth: 6 })]
  return failure(caller, `${what}\nactual: ${is}\nexpected: ${due}`, actual, expected)
}

/** Compares by Effect's `Equal`, for states may hold its collections; otherwise by `assert`, which also shows the difference. */
const same = (caller: Function, what: string, actual: unknown, expected: unknown): void => {
  if (Equal.equals(actual, expected)) return
  try {
    assert.deepStrictEqual(actual, expected)
  } catch (difference) {
    throw failure(caller, `${what}\n${difference instanceof Error ? difference.message : String(difference)}`, actual, expected)
  }
}
