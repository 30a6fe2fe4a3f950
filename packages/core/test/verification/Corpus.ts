/**
 * Messages with the code that is in each, or none, written after the formats that services publish. A third, chosen by the hash of the
 * text, is not looked at while the extractor is tuned.
 */
import { hash } from "node:crypto"
import { readFileSync } from "node:fs"

export interface Sample {
  /** ISO 639-1. */
  readonly language: string
  readonly code: string | undefined
  readonly text: string
}

const lines = readFileSync(new URL("corpus.tsv", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")

export const samples: ReadonlyArray<Sample> = lines.map((line) => {
  const [language = "", code = "", text = ""] = line.split("\t")
  return { language, code: code === "-" ? undefined : code, text: text.replaceAll("\\n", "\n") }
})

const isUnseen = ({ text }: Sample): boolean => Number.parseInt(hash("sha256", text, "hex").slice(0, 8), 16) % 3 === 0

export const tuned: ReadonlyArray<Sample> = samples.filter((sample) => !isUnseen(sample))
export const unseen: ReadonlyArray<Sample> = samples.filter(isUnseen)
