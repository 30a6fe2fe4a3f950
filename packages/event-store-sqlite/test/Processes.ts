/** Starts {@link file://./Child.ts} in a process of its own, and reads its output. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const script = fileURLToPath(new URL("Child.ts", import.meta.url))

export const command = (args: ReadonlyArray<string | number>): ReadonlyArray<string> => [
  process.execPath,
  "--conditions=@millrace/source",
  script,
  ...args.map(String)
]

export interface Running {
  readonly child: ChildProcess
  /** Every complete line so far. */
  readonly lines: ReadonlyArray<string>
  /** Waits for `count` lines with this prefix; fails if the process ends before. */
  readonly printed: (start: string, count: number) => Promise<void>
  readonly send: (line: string) => void
  /** Waits until the process has ended and its output was read. */
  readonly ended: Promise<void>
}

export const start = (file: string, args: ReadonlyArray<string>): Running => {
  const child = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] })
  const lines: Array<string> = []
  const reader = createInterface(child.stdout)
  let changed = () => {}
  reader.on("line", (line) => {
    lines.push(line)
    changed()
  })
  let isEnded = false
  const ended = once(child, "close").then(() => {
    isEnded = true
    changed()
  })
  const printed = async (start: string, count: number) => {
    while (lines.filter((line) => line.startsWith(start)).length < count) {
      if (isEnded) throw new Error(`It ended after ${lines.length} lines, the last: ${lines.slice(-3).join(" | ")}`)
      await new Promise<void>((resolve) => {
        changed = resolve
      })
    }
  }
  return { child, lines, printed, send: (line) => child.stdin.write(`${line}\n`), ended }
}

export const startChild = (...args: ReadonlyArray<string | number>): Running => {
  const [file = "", ...rest] = command(args)
  return start(file, rest)
}

/** Parses lines such as `ok child-1 4 <id>`: ids by `stream revision`. */
export const told = (lines: ReadonlyArray<string>, what: "ok" | "there"): ReadonlyMap<string, string> =>
  new Map(
    lines
      .map((line) => line.split(" "))
      .filter(([kind, , , id]) => kind === what && id?.length === 36)
      .map(([, stream, revision, id]) => [`${stream} ${revision}`, id ?? ""])
  )
