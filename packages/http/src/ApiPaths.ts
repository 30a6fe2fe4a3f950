/** Puts the prefix of the API before the paths in the data of an operation, which are relative to the root of the API. */
import { ApiPath } from "@millrace/core"
import { PREFIX, type Servable } from "./Endpoint.ts"

/** Rewrites the data of one operation's answers: as JSON text, and as the JSON value that the documentation shows. */
export interface ApiPaths {
  readonly inText: (data: string) => string
  readonly inValue: (data: unknown) => unknown
}

export const of = ({ success }: Pick<Servable, "success">): ApiPaths => {
  const places = ApiPath.placesOf(success)
  if (ApiPath.isNone(places)) return { inText: (data) => data, inValue: (data) => data }
  const inValue = prefixed(places)
  return { inText: (data) => JSON.stringify(inValue(JSON.parse(data))), inValue }
}

const prefixed =
  ({ fields, lists }: ApiPath.Places) =>
  (data: unknown): object =>
    Object.fromEntries(
      Object.entries({ ...(data as object) }).map(([name, value]) => {
        const items = lists[name]
        if (items !== undefined && Array.isArray(value)) return [name, value.map(prefixed(items))]
        return [name, fields.includes(name) && typeof value === "string" ? `${PREFIX}${value}` : value]
      })
    )
