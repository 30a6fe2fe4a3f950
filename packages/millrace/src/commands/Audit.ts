/** `audit`: replays a whole log, of a store or of an export, and checks it. */
import { readFileSync } from "node:fs"
import { type Head, type Report, sentences, statements } from "@millrace/audit"
import { Money } from "@millrace/core"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Auditing from "../administration/Audit.ts"
import * as DiskFiles from "../DiskFiles.ts"
import { CommandFailed, textOf } from "../Failure.ts"
import * as KeyCount from "../KeyCount.ts"
import * as MoneySetting from "../MoneySetting.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"
import * as Style from "../Style.ts"

const readHead = (file: string) =>
  Effect.try({
    try: (): unknown => JSON.parse(readFileSync(file, "utf8")),
    catch: (error) => new CommandFailed(`${file} holds no head of an audit: ${textOf(error)}`)
  }).pipe(Effect.flatMap((earlier) => Auditing.headOf(earlier, file)))

const readStreams = (from: string) =>
  Effect.map(
    DiskFiles.attempt(`${from} cannot be read`, () => readFileSync(from, "utf8")),
    (text): Auditing.Named => ({ text, from })
  )

const flags = {
  against: Flag.String("against").pipe(
    Flag.withMetavar("file"),
    Flag.withDescription("The report or the head of an earlier audit, which the log must extend"),
    Flag.optional
  ),
  streams: Flag.String("streams").pipe(
    Flag.withMetavar("file"),
    Flag.withDescription("The list of streams of that audit: with it, findings name each stream that differs"),
    Flag.optional
  ),
  writeStreams: Flag.String("write-streams").pipe(
    Flag.withMetavar("file"),
    Flag.withDescription("Write the list of streams, whose SHA-256 is the digest of the head, for a later --streams"),
    Flag.optional
  ),
  events: Flag.String("events").pipe(
    Flag.withMetavar("file"),
    Flag.withDescription("Audit an export of a whole log, as millrace events prints it, plain or by gzip; no store is read"),
    Flag.optional
  ),
  at: Administration.time("at", "The time at which holds count as overdue (default: the log's last event)"),
  rules: Flag.Boolean("rules").pipe(
    Flag.withDescription("List the rules, each with the tenet that it guards, and audit nothing"),
    Flag.withDefault(false)
  ),
  ...MoneySetting.flags
}

type Values = Command.Command.Config.InferValue<typeof flags>

/** The report, and the head with which it was compared. */
const audited = Effect.fnUntraced(function* ({ against, at, events, streams, writeStreams }: Values, store: string) {
  const head = Option.isSome(against) ? yield* readHead(against.value) : undefined
  const options: Auditing.Options = {
    against: head,
    streams: Option.isSome(streams) ? yield* readStreams(streams.value) : undefined,
    at: Option.getOrUndefined(at),
    writeStreams: Option.isSome(writeStreams)
  }
  const { report, streams: list = "" } = Option.isSome(events)
    ? yield* Auditing.runExport(events.value, options)
    : yield* Effect.provide(Auditing.run(options), StoreUrl.logLayer(store))
  if (Option.isSome(writeStreams)) yield* DiskFiles.write(writeStreams.value, list)
  const keys = Option.isSome(events) ? null : yield* KeyCount.find(store)
  return { report, head, keys }
})

const told = (report: Report, head: Head | undefined, keys: KeyCount.KeyCount | null, money: Money.Money): string => {
  const { issued, revoked } = report.apiKeys
  const api = `API keys: ${issued} issued, ${revoked} revoked.`
  const vault =
    keys === null ? "Keys of the vault were not counted: the state of the store is not here." : `The vault has ${KeyCount.text(keys)}.`
  const lines = sentences(report, { against: head, money, also: [api, vault] }).map(Output.printable)
  return [...lines.map((line) => coloured(line)), ""].join("\n")
}

const coloured = (line: string): string =>
  line.startsWith("All is well") ? Style.good(line) : line.startsWith("Something is wrong") ? Style.bad(line) : line

const rulesText = (): string =>
  statements.map(({ name, sentence, tenet, guards }) => `${Style.head(name)}\n  ${sentence}\n  Tenet ${tenet}: ${guards}\n`).join("\n")

export const audit = Command.make(
  "audit",
  {
    store: Administration.store,
    flags,
    text: Flag.Boolean("text").pipe(
      Flag.withDescription("Print sentences, also where the output is not a terminal"),
      Flag.withDefault(false)
    ),
    json: Output.json
  },
  ({ store, flags, text, json }) =>
    Effect.gen(function* () {
      const isText = Output.isForPeople(json) || (text && !json)
      if (flags.rules) return yield* isText ? Output.text(rulesText()) : Output.print(true, statements)
      const money = MoneySetting.of(flags)
      const { report, head, keys } = yield* Effect.provideService(audited(flags, store), Money.Current, money)
      yield* Output.exitCode(report.ok)
      if (isText) return yield* Output.text(told(report, head, keys, money))
      const { found, ...rest } = report
      yield* Output.print(true, { ...rest, keys, ...(found > report.problems.length ? { found } : {}) })
    })
).pipe(
  Command.withShortDescription("Replay the whole log and say what is wrong with it; exits with 1 if anything is"),
  Command.withDescription(
    "Replay the whole log and say what is wrong with it: what each finding means in money, then the facts. Exits with 1 if anything is wrong. Prints sentences on a terminal and JSON elsewhere"
  ),
  Administration.withExamples({
    "millrace audit --json > head.json": "Keep the report where nobody who can write the log can change it",
    "millrace audit --against head.json": "Check that the log still begins as it was then",
    "millrace audit --events export.jsonl.gz --against head.json": "Audit an export, without the store"
  })
)
