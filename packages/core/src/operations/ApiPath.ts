/**
 * Paths of the API in the data of operations, such as the path of a download. They are relative to the root of the API. Only the server
 * knows its root, so it adds the prefix.
 */
import type { Schema } from "effect"

const ANNOTATION = "@millrace/core/operations/ApiPath"

/** Marks a field at the top level of an operation's data as a path of the API, or null. */
export const mark = <S extends Schema.Codec<string | null, string | null>>(field: S): S["Rebuild"] => field.annotate({ [ANNOTATION]: true })

/** The names of the marked fields of an operation's data. */
export const fieldsOf = (data: Schema.Top): ReadonlyArray<string> =>
  data.ast._tag === "Objects"
    ? data.ast.propertySignatures.flatMap(({ name, type }) => (type.annotations?.[ANNOTATION] === true ? String(name) : []))
    : []
