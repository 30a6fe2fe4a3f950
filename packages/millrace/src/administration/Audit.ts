/** An audit of the whole log, of a store or of an export, against the head of an earlier audit. */
import { statSync } from "node:fs"
import { Audit, digest, Export, Head, parseStreamList, type Report, streamList } from "@millrace/audit"
import type { EventStore } from "@millrace/event-sourcing"
import { Effect, Schema } from "effect"
import * as DiskFiles from "../DiskFiles.ts"
import { CommandFailed, fail, textOf } from "../Failure.ts"
import * as Progress from "../Progress.ts"
import * as SettingNames from "../SettingNames.ts"

/** A head, or a whole report of an earlier audit. */
const Earlier = Schema.Union([Head, Schema.Struct({ head: Head })])
export type Earlier = Head | { readonly head: Head }

const decodeEarlier = Schema.decodeUnknownEffect(Earlier)

/** The head in a report, or the head itself. `from` names it in sentences. */
export const headOf = (earlier: unknown, from: string): Effect.Effect<Head, CommandFailed> =>
  decodeEarlier(earlier).pipe(
    Effect.mapBoth({
      onSuccess: (read) => ("head" in read ? read.head : read),
      onFailure: (error) => new CommandFailed(`${from} holds no head of an audit: ${textOf(error)}`)
    })
  )

/** A text, and what sentences call it: a file, or an option. */
export interface Named {
  readonly text: string
  readonly from: string
}

/** The list of streams that belongs to a head. */
const streamsOf = Effect.fnUntraced(function* ({ from, text }: Named, head: Head | undefined) {
  const { against, streams: given, writeStreams } = yield* SettingNames.Current
  if (head === undefined) return yield* fail(`${given} is read beside the head that proves it: name that by ${against}`)
  const streams = parseStreamList(text)
  if (streams === undefined) return yield* fail(`${from} is no list of streams: see ${writeStreams}`)
  if (digest(streams) !== head.digest)
    return yield* fail(`${from} is not the list of streams of this head: its SHA-256 is not the head's digest`)
  return streams
})

export interface Options {
  /** The head of an earlier audit, which the log must extend. */
  readonly against: Head | undefined
  /** The list of streams of that audit. */
  readonly streams: Named | undefined
  /** The time at which holds count as overdue. */
  readonly at: Date | undefined
  /** Whether the list of streams is wanted, for a later `streams`. */
  readonly writeStreams: boolean
}

/** What was found, and the list of streams as text, if it is wanted: its SHA-256 is the digest of the head. */
export interface Audited {
  readonly report: Report
  readonly streams: string | undefined
}

const audited = <E, R>(
  { against, at, streams, writeStreams }: Options,
  audit: (options: Audit.Options) => Effect.Effect<Report, E, R>
): Effect.Effect<Audited, CommandFailed | E, R> =>
  Effect.gen(function* () {
    const ends = streams === undefined ? undefined : yield* streamsOf(streams, against)
    let list: string | undefined
    const report = yield* audit({
      ...(against === undefined ? {} : { against }),
      ...(ends === undefined ? {} : { streams: ends }),
      ...(at === undefined ? {} : { at: at.getTime() }),
      ...(writeStreams ? { onStreams: (ends) => (list = [...streamList(ends)].join("")) } : {})
    })
    return { report, streams: list }
  })

/** Audits the log of the event store in the context. */
export const run = (options: Options): Effect.Effect<Audited, CommandFailed | EventStore.StoreUnavailable, EventStore.EventStore> =>
  audited(options, (ready) => Progress.watch("Auditing")(Audit.run(ready)))

/** The export in a file. A name that is mistaken is told as such, and not as a store that is down. */
export const exportOf = (file: string): Effect.Effect<Export, CommandFailed> =>
  Effect.gen(function* () {
    const found = yield* DiskFiles.attempt(`${file} cannot be read`, () => statSync(file))
    if (found.isDirectory()) return yield* fail(`${file} is a folder: name the file that millrace events wrote`)
    return new Export(file)
  })

/** Audits an export: a file as `millrace events` prints it, plain or by gzip. */
export const runExport = (file: string, options: Options): Effect.Effect<Audited, CommandFailed | EventStore.StoreUnavailable> =>
  Effect.flatMap(exportOf(file), (log) =>
    audited(options, (ready) =>
      Progress.bytes("Auditing", (advance) => {
        log.onRead = advance
        return Audit.runExport(log, ready)
      })
    )
  )
