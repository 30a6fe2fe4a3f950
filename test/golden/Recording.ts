/** Records golden streams: reads the events from stdin, and writes a folder that is never changed again. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** The folder of a golden of a category. */
export const folderOf = (category: string, name: string): string => {
  if (!/^[a-z0-9-]+$/u.test(name)) throw new Error(`The name must have lower-case letters, digits and hyphens only: ${JSON.stringify(name)}`)
  return join(fileURLToPath(new URL(category, import.meta.url)), name)
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))

/** The events of stdin, one a line, with their exact text. */
export const given = (): string =>
  readFileSync(0, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { stream, revision, id, type, data, metadata } = JSON.parse(line)
      return `${JSON.stringify({ stream, revision, id, type, data: textOf(data), metadata: textOf(metadata) })}\n`
    })
    .join("")

/** Writes new files. */
export const write = (folder: string, files: Readonly<Record<string, string>>): void => {
  mkdirSync(folder, { recursive: true })
  for (const [file, text] of Object.entries(files)) {
    writeFileSync(join(folder, file), text, { flag: "wx" })
    console.log(join(folder, file))
  }
}
