/** `journal`: the double-entry journal, for accounting tools. */
import { Journal } from "@millrace/audit"
import { Money } from "@millrace/core"
import { Effect, identity, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as MoneySetting from "../MoneySetting.ts"
import * as Output from "../Output.ts"
import * as Progress from "../Progress.ts"
import * as StoreUrl from "../StoreUrl.ts"

/** The log does not verify. The message says where, and what to do. */
class JournalRefused extends Error {
  readonly _tag = "UnverifiedLog"
}

const refused = ({ message }: Journal.UnverifiedLog) =>
  new JournalRefused(
    `${message}. What was printed ends before it: do not use it. millrace audit says what is wrong, and --unverified writes the journal all the same`
  )

export const journal = Command.make(
  "journal",
  {
    store: Administration.store,
    format: Flag.Literals("format", ["hledger", "ledger", "beancount", "csv", "jsonl"]).pipe(Flag.withDescription("Format of the journal")),
    unverified: Flag.Boolean("unverified").pipe(
      Flag.withDescription("Write the journal of a log whose places and hashes are not checked"),
      Flag.withDefault(false)
    ),
    ...MoneySetting.flags
  },
  ({ store, format, unverified, ...money }) =>
    Stream.runForEach(Journal.journal(format, { unverified }), Output.text).pipe(
      // On the terminal that shows the journal, the line would stand within it
      process.stdout.isTTY === true ? identity : Progress.watch("Writing the journal"),
      Effect.catchTag("UnverifiedLog", (error) => Effect.fail(refused(error))),
      Effect.provideService(Money.Current, MoneySetting.of(money)),
      Effect.provide(StoreUrl.logLayer(store))
    )
).pipe(
  Command.withShortDescription("Print the double-entry journal: postings with their events, and the balances they lead to"),
  Command.withDescription(
    "Print the double-entry journal: postings with their events, and the balances they lead to. Places and hashes of events are verified as they are read; the command fails at the first that is wrong"
  ),
  Administration.withExamples({
    "millrace journal --format hledger > millrace.journal && hledger -f millrace.journal check": "Check the journal with hledger",
    "millrace journal --format csv > postings.csv": "Export the postings to a spreadsheet"
  })
)
