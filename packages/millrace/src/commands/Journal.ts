/** `journal`: the double-entry journal, for accounting tools. */
import { Journal } from "@millrace/audit"
import { Money } from "@millrace/core"
import { Effect, identity, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Auditing from "../administration/Audit.ts"
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

/** On the terminal that shows the journal, the line of progress would stand within it. */
const isShown = process.stdout.isTTY === true
const WRITING = "Writing the journal"

const ofStore = (store: string, format: Journal.FormatName, unverified: boolean) =>
  Stream.runForEach(Journal.journal(format, { unverified }), Output.text).pipe(
    isShown ? identity : Progress.watch(WRITING),
    Effect.provide(StoreUrl.logLayer(store))
  )

const ofExport = (file: string, format: Journal.FormatName, unverified: boolean) =>
  Effect.flatMap(Auditing.exportOf(file), (log) => {
    const text = Stream.runForEach(Journal.journalOfExport(format, log, { unverified }), Output.text)
    if (isShown) return text
    return Progress.bytes(WRITING, (advance) => {
      log.onRead = advance
      return text
    })
  })

export const journal = Command.make(
  "journal",
  {
    store: Administration.store,
    format: Flag.Literals("format", ["hledger", "ledger", "beancount", "csv", "jsonl"]).pipe(Flag.withDescription("Format of the journal")),
    events: Flag.String("events").pipe(
      Flag.withMetavar("file"),
      Flag.withDescription(
        "Write the journal of an export of a whole log, as millrace events prints it, plain or by gzip; no store is read"
      ),
      Flag.optional
    ),
    unverified: Flag.Boolean("unverified").pipe(
      Flag.withDescription("Write the journal of a log whose places and hashes are not checked"),
      Flag.withDefault(false)
    ),
    ...MoneySetting.flags
  },
  ({ events, format, store, unverified, ...money }) =>
    (Option.isSome(events) ? ofExport(events.value, format, unverified) : ofStore(store, format, unverified)).pipe(
      Effect.catchTag("UnverifiedLog", (error) => Effect.fail(refused(error))),
      Effect.provideService(Money.Current, MoneySetting.of(money))
    )
).pipe(
  Command.withShortDescription("Print the double-entry journal: postings with their events, and the balances they lead to"),
  Command.withDescription(
    "Print the double-entry journal: postings with their events, and the balances they lead to. Places and hashes of events are verified as they are read; the command fails at the first that is wrong"
  ),
  Administration.withExamples({
    "millrace journal --format hledger > millrace.journal && hledger -f millrace.journal check": "Check the journal with hledger",
    "millrace journal --format csv > postings.csv": "Export the postings to a spreadsheet",
    "millrace journal --events export.jsonl.gz --format ledger > millrace.journal": "Write the journal of an export, without the store"
  })
)
