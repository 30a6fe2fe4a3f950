/**
 * Paths of the API in the data of operations, such as the path of a download. They are relative to the root of the API. Only the server
 * knows its root, so it adds the prefix.
 */
import type { Schema } from "effect"

const ANNOTATION = "@millrace/core/operations/ApiPath"

/** Marks a field of an operation's data, or of the items of a list in it, as a path of the API, or null. */
export const mark = <S extends Schema.Codec<string | null, string | null>>(field: S): S["Rebuild"] => field.annotate({ [ANNOTATION]: true })

/** The places of the marked fields: `url`, or `url` of the items of the list `files`. */
export interface Places {
  readonly fields: ReadonlyArray<string>
  readonly lists: Readonly<Record<string, Places>>
}

const NONE: Places = { fields: [], lists: {} }

export const isNone = ({ fields, lists }: Places): boolean => fields.length === 0 && Object.keys(lists).length === 0

/** The places of the marked fields of an operation's data. */
export const placesOf = ({ ast }: Pick<Schema.Top, "ast">): Places => {
  if (ast._tag !== "Objects") return NONE
  const fields = ast.propertySignatures.flatMap(({ name, type }) => (type.annotations?.[ANNOTATION] === true ? String(name) : []))
  const lists = ast.propertySignatures.flatMap(({ name, type }) => {
    const item = type._tag === "Arrays" ? type.rest[0] : undefined
    const places = item === undefined ? NONE : placesOf({ ast: item })
    return isNone(places) ? [] : [[String(name), places] as const]
  })
  return { fields, lists: Object.fromEntries(lists) }
}
