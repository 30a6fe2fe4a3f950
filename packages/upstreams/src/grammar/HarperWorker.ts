/** The worker thread of Harper: receives a `HarperRequest`, posts a `GrammarReport`. A failure ends the thread. */
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { parentPort } from "node:worker_threads"
import type { Grammar } from "@millrace/core"
import { createBinaryModuleFromUrl, Dialect, type Lint, LocalLinter, SuggestionKind } from "harper.js"
import { slimBinary } from "harper.js/slimBinary"

export interface HarperRequest {
  readonly text: string
  readonly dialect: keyof typeof Dialect
}

type Match = (typeof Grammar.GrammarReport.Type)["matches"][number]

/** Harper does not decode the path of a file URL, so it would not find a file with a space in its path. */
const readBinary = async () => {
  const wasm = new Blob([await readFile(fileURLToPath(slimBinary.url))], { type: "application/wasm" })
  return createBinaryModuleFromUrl(URL.createObjectURL(wasm), "slim")
}

const binary = await readBinary()
const linters = new Map<keyof typeof Dialect, LocalLinter>()

const linterOf = (dialect: keyof typeof Dialect): LocalLinter => {
  const linter = linters.get(dialect) ?? new LocalLinter({ binary, dialect: Dialect[dialect] })
  linters.set(dialect, linter)
  return linter
}

/** Harper's spans count UTF-16 code units. Its objects stay in the WebAssembly memory until they are freed. */
const matchOf = (rule: string, lint: Lint): Match => {
  const span = lint.span()
  const { start, end } = span
  const problem = lint.get_problem_text()
  const replacements = lint.suggestions().map((suggestion) => {
    const text = suggestion.get_replacement_text()
    const replacement = suggestion.kind() === SuggestionKind.InsertAfter ? problem + text : text
    suggestion.free()
    return replacement
  })
  const match = { message: lint.message(), offset: start, length: end - start, replacements: [...new Set(replacements)], rule }
  span.free()
  lint.free()
  return match
}

const check = async ({ text, dialect }: HarperRequest): Promise<ReadonlyArray<Match>> => {
  const lints = await linterOf(dialect).organizedLints(text, { language: "plaintext" })
  return Object.entries(lints)
    .flatMap(([rule, found]) => found.map((lint) => matchOf(rule, lint)))
    .sort((a, b) => a.offset - b.offset || a.length - b.length || (a.rule < b.rule ? -1 : 1))
}

parentPort?.on("message", async (request: HarperRequest) => parentPort?.postMessage({ matches: await check(request) }))
// The first check builds the index of the dictionary, which takes as long as hundreds of checks: do it before the thread is ready
await check({ text: "Teh aparatus is redy.", dialect: "American" })
parentPort?.postMessage("ready")
