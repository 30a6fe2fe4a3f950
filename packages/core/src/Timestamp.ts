/** Instants: ISO 8601 text in the log, milliseconds since 1970 in memory. */
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"

/** Milliseconds since 1970. */
export type Timestamp = number

/** Exactly as it is written, `2026-01-31T00:00:00.000Z`, so that what is read and written again is the same text. */
export const Timestamp: Schema.Codec<Timestamp, string> = Schema.String.pipe(
  Schema.decodeTo(Schema.Int, {
    decode: SchemaGetter.transformEffect((text: string) => {
      const millis = Date.parse(text)
      return text.length === 24 && !Number.isNaN(millis)
        ? Effect.succeed(millis)
        : Effect.fail(new SchemaIssue.InvalidValue({ message: "expected a time such as 2026-01-31T00:00:00.000Z" }))
    }),
    encode: SchemaGetter.transform((millis: number) => new Date(millis).toISOString())
  })
)

export const toIso = (millis: Timestamp): string => new Date(millis).toISOString()
