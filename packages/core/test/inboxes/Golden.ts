/** Recorded inboxes and claims of addresses, and their states: text that must be the same in every release. See `test/golden/addInbox.ts`. */
import { Inbox, InboxAddress } from "@millrace/core"
import type { Decider } from "@millrace/event-sourcing"
import { decodeWith, type RecordedLine } from "../ledger/Golden.ts"

const inbox = Inbox.Inbox
const address = InboxAddress.AddressClaim

/** Sorts fields by name. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, value]) => [name, sorted(value)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1))
  )
}

const replayWith = <State, Event extends { readonly _tag: string }>(
  { codec, evolve, initial }: Decider<State, Event>,
  log: ReadonlyArray<RecordedLine>
) => {
  let state = initial
  const lines = decodeWith(codec, log).map(({ at, event, line }) => {
    state = evolve(state, event, at)
    return { line, encoded: codec.encode(event), state: `${JSON.stringify(sorted(state))}\n` }
  })
  return lines
}

/** Each event with its encoding by this release, and the state after it. */
export const lines = (log: ReadonlyArray<RecordedLine>) =>
  log[0]?.stream.startsWith("address-") ? replayWith(address, log) : replayWith(inbox, log)

/** The state after each event, as lines of JSON. */
export const replay = (log: ReadonlyArray<RecordedLine>): string =>
  lines(log)
    .map(({ state }) => state)
    .join("")
