/** Instants: ISO 8601 text in the log, milliseconds since 1970 in memory. */
import { fromIso, toIso } from "@millrace/event-sourcing"
import { Schema, SchemaGetter } from "effect"

/** Milliseconds since 1970. */
export type Timestamp = number

export { toIso }

const message = "expected a time such as 2026-01-31T00:00:00.000Z"

/** The years 0000 to 9999: other times have no ISO 8601 text that can be read back. */
const Instant = Schema.Int.annotate({ message }).check(
  Schema.isBetween({ minimum: -62_167_219_200_000, maximum: 253_402_300_799_999 }, { message })
)

/** Accepts only the format that it writes, `2026-01-31T00:00:00.000Z`, so text survives a round trip unchanged. */
export const Timestamp: Schema.Codec<Timestamp, string> = Schema.String.pipe(
  Schema.decodeTo(Instant, {
    decode: SchemaGetter.transform(fromIso),
    encode: SchemaGetter.transform(toIso)
  })
)
