/** Which events are part of the log, as the server's filter says it and as the reader checks it. */
import type { Filter } from "./Driver.ts"

/** The server's own types begin with this, and so do {@link SNAPSHOT} and {@link CLOCK}. */
const SYSTEM = "$"

/** The type of the one event in a stream of snapshots. */
export const SNAPSHOT = "$snapshot"

/** The type of the events that the server dates, so that they tell its time. */
export const CLOCK = "$clock"

export const isSystem = (type: string): boolean => type.startsWith(SYSTEM)

/** The server takes one condition: the categories where they are given, because that leaves out more. The reader checks the rest. */
export const filterOf = (categories: ReadonlyArray<string> | undefined): Filter =>
  categories === undefined ? { by: "type", regex: "^[^$].*" } : { by: "stream", prefixes: categories.map((category) => `${category}-`) }
