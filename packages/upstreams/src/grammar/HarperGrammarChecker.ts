/**
 * `GrammarChecker` on Harper, in this process and offline: English only, in worker threads that the first check starts (about a second
 * and some 350 MB each) and the end of the layer's scope ends.
 */
import { Grammar } from "@millrace/core"
import { type Duration, Effect, Layer } from "effect"
import * as WorkerPool from "../shared/WorkerPool.ts"
import type { HarperRequest } from "./HarperWorker.ts"
import { proseOf } from "./Prose.ts"
import { type TextPiece, textPieces } from "./TextPieces.ts"

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

/**
 * UTF-16 code units that Harper checks at once, longer than nearly all sentences. Prose takes it some 10 ms; a thousand random letters,
 * for which it looks up similar words, take it up to a second.
 */
const PIECE = 1_000

type Report = typeof Grammar.GrammarReport.Type

export interface Options extends Pick<WorkerPool.Options<Report>, "threads" | "accountLimit" | "queueLimit"> {
  /** How long a check may wait for its turns, beside other checks. 10 seconds by default. */
  readonly waitLimit?: Duration.Input
  /** For the work on one piece of a text. 15 seconds by default. */
  readonly timeLimit?: Duration.Input
  /** A thread that checked nothing for so long is ended, to be started again when needed. Never by default. */
  readonly idleLimit?: Duration.Input
}

/**
 * Checks texts as plain text, in pieces of whole sentences and in fair turns between accounts. Runs that are no English prose are left
 * out: a hundred characters without a space, 32 signs or letters of other scripts. Rules bear Harper's names, such as `AnA`. A check fails
 * with `UpstreamUnavailable`, isolated, where it waits too long, Harper dies of the text or hangs, or too many checks wait.
 */
export const layer = ({
  waitLimit = "10 seconds",
  timeLimit = "15 seconds",
  idleLimit = "Infinity",
  ...limits
}: Options = {}): Layer.Layer<Grammar.GrammarChecker> =>
  Layer.effect(
    Grammar.GrammarChecker,
    Effect.gen(function* () {
      const harper = yield* WorkerPool.make<HarperRequest, Report>({
        upstream: "harper",
        script: SCRIPT,
        reply: Grammar.GrammarReport,
        waitLimit,
        timeLimit,
        idleLimit,
        ...limits
      })
      return {
        supports: (language) => DIALECTS.has(language.toLowerCase()),
        check: Effect.fn("HarperGrammarChecker.check")(function* ({ accountId, text, language }) {
          const dialect = DIALECTS.get(language.toLowerCase()) ?? "American"
          const pieces = textPieces(proseOf(text), PIECE).filter((piece) => /\S/u.test(piece.text))
          const requests = pieces.map((piece) => ({ text: piece.text, dialect }))
          const reports = yield* harper.ask(accountId, requests)
          return { matches: pieces.flatMap((piece, i) => matchesIn(piece, reports[i]?.matches ?? [])) }
        })
      }
    })
  )

/** The first word of a sentence needs a capital letter. */
const CAPITALIZATION = "SentenceCapitalization"
/** A quotation has no end. */
const UNCLOSED_QUOTES = "UnclosedQuotes"

/** Matches in a piece as matches in the whole text, without those that are due to where the text is cut. */
const matchesIn = ({ after, ends, offset, text }: TextPiece, matches: Report["matches"]): Report["matches"] => {
  const isWithinSentence = after === "word" || after === "character"
  const isWithinParagraph = after !== "paragraph" || ends !== "paragraph"
  const begin = text.search(/\S/u)
  return matches
    .filter((match) => !(isWithinSentence && match.rule === CAPITALIZATION && match.offset <= begin))
    .filter((match) => !(isWithinParagraph && match.rule === UNCLOSED_QUOTES))
    .map((match) => ({ ...match, offset: offset + match.offset }))
}
