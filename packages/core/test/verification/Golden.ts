/** Recorded messages and waits, and their states: text that must be the same in every release. See `test/golden/addVerification.ts`. */
import { Sms, Verification } from "@millrace/core"
import type { Decider } from "@millrace/event-sourcing"
import { decodeWith, type RecordedLine } from "../ledger/Golden.ts"

/** The state of the message or the wait of a log after each of its events, as lines of JSON. */
export const replay = (log: ReadonlyArray<RecordedLine>): string =>
  log[0]?.stream.startsWith("sms-") === true ? statesOf(Sms.Sms, log) : statesOf(Verification.Verification, log)

/** The events of a log, encoded again. */
export const encoded = (log: ReadonlyArray<RecordedLine>): ReadonlyArray<{ readonly type: string; readonly data: string }> =>
  log[0]?.stream.startsWith("sms-") === true
    ? decodeWith(Sms.Sms.codec, log).map(({ event }) => Sms.Sms.codec.encode(event))
    : decodeWith(Verification.Verification.codec, log).map(({ event }) => Verification.Verification.codec.encode(event))

const statesOf = <State, Event extends { readonly _tag: string }>(
  { codec, evolve, initial }: Decider<State, Event>,
  log: ReadonlyArray<RecordedLine>
): string => {
  let state = initial
  return decodeWith(codec, log)
    .map(({ at, event }) => {
      state = evolve(state, event, at)
      return `${JSON.stringify(state)}\n`
    })
    .join("")
}
