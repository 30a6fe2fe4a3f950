/** Selects the events that are part of the log, in the server's filter and in the reader. */
import type { Filter } from "./Driver.ts"

/** The prefix of the server's own types, and of {@link SNAPSHOT} and {@link CLOCK}. */
const SYSTEM = "$"

/** The type of a snapshot event. */
export const SNAPSHOT = "$snapshot"

/** The type of the events whose date tells the server's time. */
export const CLOCK = "$clock"

export const isSystem = (type: string): boolean => type.startsWith(SYSTEM)

/** The server takes one condition. Categories, if given, exclude more than types do. The reader checks the rest. */
export const filterOf = (categories: ReadonlyArray<string> | undefined): Filter =>
  categories === undefined ? { by: "type", regex: "^[^$].*" } : { by: "stream", prefixes: categories.map((category) => `${category}-`) }
