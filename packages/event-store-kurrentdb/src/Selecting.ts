/** Which events a reader is told of, in words that the server understands. */
import type { Following } from "@millrace/event-sourcing"
import type { Filter } from "./Driver.ts"

/** Types that begin so are the server's own, and {@link SNAPSHOT}. */
const SYSTEM = "$"

/** The type of the one event in a stream of snapshots: what is not for readers of the log begins so, and is left out by the server. */
export const SNAPSHOT = "$snapshot"

/** The type of the one event in the stream that the server dates to tell its time. */
export const CLOCK = "$clock"

export const isSystem = (type: string): boolean => type.startsWith(SYSTEM)

/** The server takes one condition: by category where there is one, for it leaves out more. The reader checks the rest. */
export const filterOf = ({ categories, types }: Following.Selection): Filter => {
  if (categories !== undefined) return { by: "stream", prefixes: categories.map((category) => `${category}-`) }
  if (types !== undefined) return { by: "type", regex: `^(?:${types.map(escaped).join("|")})$` }
  return { by: "type", regex: "^[^$].*" }
}

/** As literal text, to JavaScript and to .NET. */
const escaped = (type: string): string => type.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")
