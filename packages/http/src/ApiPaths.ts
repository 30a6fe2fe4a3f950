/** Puts the prefix of the API before the paths in the data of an operation, which are relative to the root of the API. */
import { ApiPath } from "@millrace/core"
import { PREFIX, type Servable } from "./Endpoint.ts"

/** Rewrites the data of one operation's answers: as JSON text, and as the JSON value that the documentation shows. */
export interface ApiPaths {
  readonly inText: (data: string) => string
  readonly inValue: (data: unknown) => unknown
}

export const of = ({ success }: Pick<Servable, "success">): ApiPaths => {
  const fields = ApiPath.fieldsOf(success)
  if (fields.length === 0) return { inText: (data) => data, inValue: (data) => data }
  const inValue = (data: unknown) => {
    const paths = Object.entries({ ...(data as object) }).filter(([name, value]) => fields.includes(name) && typeof value === "string")
    return { ...(data as object), ...Object.fromEntries(paths.map(([name, path]) => [name, `${PREFIX}${path}`])) }
  }
  return { inText: (data) => JSON.stringify(inValue(JSON.parse(data))), inValue }
}
