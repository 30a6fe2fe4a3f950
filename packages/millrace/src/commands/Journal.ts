/** `journal`: the double-entry journal, for accounting tools. */
import { Journal } from "@millrace/audit"
import { Effect, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"

export const journal = Command.make(
  "journal",
  {
    store: Administration.store,
    format: Flag.Literals("format", ["hledger", "ledger", "beancount", "csv", "jsonl"]).pipe(Flag.withDescription("Format of the journal"))
  },
  ({ store, format }) => Stream.runForEach(Journal.journal(format), Output.text).pipe(Effect.provide(StoreUrl.logLayer(store)))
).pipe(
  Command.withDescription("Print the double-entry journal: postings with their events, and the balances they lead to"),
  Administration.withExamples({
    "millrace journal --format hledger > millrace.journal && hledger -f millrace.journal check": "Check the journal with hledger",
    "millrace journal --format csv > postings.csv": "Export the postings to a spreadsheet"
  })
)
