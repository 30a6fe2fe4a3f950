/**
 * `GrammarChecker` on Harper, in this process and offline: English only, in a worker thread that the first check starts (about a
 * second, some 350 MB) and the end of the layer's scope ends.
 */
import { Grammar } from "@millrace/core"
import { type Duration, Effect, Layer } from "effect"
import * as WorkerThread from "../shared/WorkerThread.ts"
import type { HarperRequest } from "./HarperWorker.ts"

const DIALECTS: ReadonlyMap<string, HarperRequest["dialect"]> = new Map([
  ["en", "American"],
  ["en-us", "American"],
  ["en-gb", "British"],
  ["en-au", "Australian"],
  ["en-ca", "Canadian"],
  ["en-in", "Indian"]
])

/** Sources run as they are, a published package compiled: the worker beside this file has the same ending. */
const SCRIPT = new URL(import.meta.url.endsWith(".ts") ? "./HarperWorker.ts" : "./HarperWorker.js", import.meta.url)

export interface Options {
  /** Checks waiting or running; one more fails. 16 unless told. */
  readonly queueLimit?: number
  /** For one check; one that exceeds it fails, and its thread is ended. 20 seconds unless told. */
  readonly timeLimit?: Duration.Input
  /** A thread that checked nothing for so long is ended, to be started anew when needed. Never unless told. */
  readonly idleLimit?: Duration.Input
}

/**
 * Texts are checked as plain text, one at a time. Left out are runs that are no English prose: a hundred characters without a space,
 * or 32 signs or letters of other scripts. Rules bear Harper's names, such as `AnA`. A check whose thread died, hung or found the
 * queue full fails with `UpstreamUnavailable`; an interrupted one ends its thread; in both cases the next check has a new one.
 */
export const layer = ({
  queueLimit = 16,
  timeLimit = "20 seconds",
  idleLimit = "Infinity"
}: Options = {}): Layer.Layer<Grammar.GrammarChecker> =>
  Layer.effect(
    Grammar.GrammarChecker,
    Effect.gen(function* () {
      const harper = yield* WorkerThread.make<HarperRequest, typeof Grammar.GrammarReport.Type>({
        upstream: "harper",
        script: SCRIPT,
        reply: Grammar.GrammarReport,
        queueLimit,
        timeLimit,
        idleLimit
      })
      return {
        supports: (language) => DIALECTS.has(language.toLowerCase()),
        check: Effect.fn("HarperGrammarChecker.check")(({ text, language }) =>
          harper.ask({ text, dialect: DIALECTS.get(language.toLowerCase()) ?? "American" })
        )
      }
    })
  )
