/**
 * `GrammarChecker` on Harper, in this process and offline, for English only. The first check starts worker threads (about a second and 350
 * MB each), and the end of the layer's scope ends them.
 */
import { Grammar } from "@millrace/core"
import { type Duration, Effect, Layer } from "effect"
import * as WorkerPool from "../shared/WorkerPool.ts"
import type { HarperRequest } from "./HarperWorker.ts"
import { proseOf, type TextPiece, textPieces } from "./TextPieces.ts"

const DIALECTS: ReadonlyMap<string, HarperRequest["dialect"]> = new Map([
  ["en", "American"],
  ["en-us", "American"],
  ["en-gb", "British"],
  ["en-au", "Australian"],
  ["en-ca", "Canadian"],
  ["en-in", "Indian"]
])

/** The worker's file has the extension of this one: `.ts` in the repository, `.js` in a published package. */
const SCRIPT = new URL(import.meta.url.endsWith(".ts") ? "./HarperWorker.ts" : "./HarperWorker.js", import.meta.url)

/**
 * The UTF-16 code units of a piece, longer than nearly all sentences. Prose of this length takes about 10 ms; a thousand random letters,
 * for which Harper looks up similar words, take up to a second.
 */
const PIECE = 1_000

type Report = typeof Grammar.GrammarReport.Type

export interface Options extends Pick<WorkerPool.Options<Report>, "threads" | "accountLimit" | "queueLimit"> {
  /** The longest wait of a check for its turns; 10 seconds by default. */
  readonly waitLimit?: Duration.Input
  /** The time limit of one piece of a text; 15 seconds by default. */
  readonly timeLimit?: Duration.Input
  /** A thread that is idle for this long is ended, and restarted when needed. Never by default. */
  readonly idleLimit?: Duration.Input
}

/**
 * Checks plain text, in pieces of whole sentences and in fair turns between accounts. It skips runs that are not English prose: a hundred
 * characters without a space, or 32 signs or letters of other scripts. Rules have Harper's names, such as `AnA`. Isolated
 * `UpstreamUnavailable` if the check waits too long, Harper crashes or hangs, or too many checks wait.
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

/** Harper's rule that a sentence begins with a capital letter. */
const CAPITALIZATION = "SentenceCapitalization"
/** Harper's rule that a quotation is closed. */
const UNCLOSED_QUOTES = "UnclosedQuotes"

/** Converts matches in a piece to matches in the text, without those caused by the split. */
const matchesIn = ({ after, ends, offset, text }: TextPiece, matches: Report["matches"]): Report["matches"] => {
  const isWithinSentence = after === "word" || after === "character"
  const isWithinParagraph = after !== "paragraph" || ends !== "paragraph"
  const begin = text.search(/\S/u)
  return matches
    .filter((match) => !(isWithinSentence && match.rule === CAPITALIZATION && match.offset <= begin))
    .filter((match) => !(isWithinParagraph && match.rule === UNCLOSED_QUOTES))
    .map((match) => ({ ...match, offset: offset + match.offset }))
}
