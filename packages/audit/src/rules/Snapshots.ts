/** A snapshot is no evidence: it is left aside by the replay, then must be what the replay comes to at its revision. */
import { Account, AccountSnapshot } from "@millrace/core"
import { Aggregate, type HashChain, StreamName } from "@millrace/event-sourcing"
import { Equal, Schema } from "effect"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Aggregate.savedSchema(AccountSnapshot.accountSnapshots.state)))

/** Where the newest snapshot of an account by this release's fold is kept. */
export const snapshotOf = (accountId: string): StreamName.StreamName =>
  StreamName.make(Aggregate.snapshotCategory(Account.Account.category, AccountSnapshot.VERSION), accountId)

/** What a stored snapshot says, field by field, is what the events say. */
export const snapshotAgrees = (
  stored: string,
  replayed: { readonly state: Account.Account; readonly hash: HashChain.Hash; readonly at: number }
): string | undefined => {
  const saved = decode(stored)
  if (saved._tag === "None") return "the snapshot cannot be read"
  const { hash, at, state } = saved.value
  if (hash !== replayed.hash) return "the snapshot is of another history: its hash differs"
  const wrong: Array<string> = at === replayed.at ? [] : ["at"]
  const then: Readonly<Record<string, unknown>> = { ...replayed.state }
  for (const [field, value] of Object.entries(state)) if (!Equal.equals(value, then[field])) wrong.push(field)
  return wrong.length === 0 ? undefined : `the snapshot differs from the events in ${wrong.join(", ")}`
}
