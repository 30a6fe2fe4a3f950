/** `audit`: replays the whole log and checks it. */
import { readFileSync } from "node:fs"
import { Audit, Head } from "@millrace/audit"
import { Effect, Option, Schema } from "effect"
import { Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import { CommandFailed, textOf } from "../Failure.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"

/** A head, or a whole report of an earlier audit. */
const Earlier = Schema.Union([Head, Schema.Struct({ head: Head })])

const readHead = (file: string) =>
  Effect.try({
    try: () => {
      const earlier = Schema.decodeUnknownSync(Earlier)(JSON.parse(readFileSync(file, "utf8")))
      return "head" in earlier ? earlier.head : earlier
    },
    catch: (error) => new CommandFailed(`${file} holds no head of an audit: ${textOf(error)}`)
  })

export const audit = Administration.query(
  "audit",
  "Replay the whole log and list what is wrong with it; exits with 1 if anything is",
  {
    "millrace audit --json > head.json": "Keep the report where nobody who can write the log can change it",
    "millrace audit --against head.json": "Check that the log still begins as it was then"
  },
  StoreUrl.logLayer,
  {
    against: Flag.String("against").pipe(
      Flag.withDescription("File with the report or the head of an earlier audit, which the log must extend"),
      Flag.optional
    ),
    at: Administration.time("at", "The time at which holds count as overdue (default: the log's last event)")
  },
  Effect.fnUntraced(function* ({ against, at }) {
    const head = Option.isSome(against) ? yield* readHead(against.value) : undefined
    const { found, ...report } = yield* Audit.run({
      ...(head === undefined ? {} : { against: head }),
      ...(Option.isSome(at) ? { at: at.value.getTime() } : {})
    })
    yield* Output.exitCode(report.ok)
    return found > report.problems.length ? { ...report, found } : report
  })
)
