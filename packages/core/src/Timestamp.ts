/** Instants: ISO 8601 text in the log, milliseconds since 1970 in memory. */
import { toIso } from "@millrace/event-sourcing"
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"

/** Milliseconds since 1970. */
export type Timestamp = number

/** Exactly as it is written, `2026-01-31T00:00:00.000Z`, so that what is read and written again is the same text. */
export const Timestamp: Schema.Codec<Timestamp, string> = Schema.String.pipe(
  Schema.decodeTo(Schema.Int, {
    decode: SchemaGetter.transformEffect((text: string) => {
      const millis = Date.parse(text)
      return isCanonical(text, millis)
        ? Effect.succeed(millis)
        : Effect.fail(new SchemaIssue.InvalidValue({ message: "expected a time such as 2026-01-31T00:00:00.000Z" }))
    }),
    encode: SchemaGetter.transform(toIso)
  })
)

export { toIso }

const SHAPE = /^\d{4}-\d\d-(?<day>\d\d)T(?:[01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z$/u

/** Up to the 28th every month has the day; after it the date is written again to see, which costs more than all the rest. */
const isCanonical = (text: string, millis: number): boolean => {
  const day = SHAPE.exec(text)?.groups?.["day"]
  return day !== undefined && !Number.isNaN(millis) && (day <= "28" || toIso(millis) === text)
}
