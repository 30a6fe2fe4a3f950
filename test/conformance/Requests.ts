/** Rows and their input as HTTP requests. */
import type { Input } from "./Cases.ts"
import type { Row } from "./Row.ts"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

/** Sends it over a socket; what is no parameter of the row goes where bodies go. */
export const send = async (base: string, row: Row, input: Input, key?: string): Promise<Answer> => {
  const { path, query, header } = row.parameters
  const target = new URL(base)
  target.pathname = row.path.replaceAll(/\{(\w+)\}/gu, (_, name: string) => encodeURIComponent(String(input[name])))
  const headers = new Headers(key === undefined ? {} : { authorization: `Bearer ${key}` })
  if (row.makesJob) headers.set("prefer", "wait=30")
  const body: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(input)) {
    if (Object.hasOwn(path, name)) continue
    if (Object.hasOwn(query, name)) for (const one of [value].flat()) target.searchParams.append(name, String(one))
    else if (Object.hasOwn(header, name)) headers.set(name, String(value))
    else body[name] = value
  }
  const hasBody = Object.keys(body).length > 0
  if (hasBody) headers.set("content-type", "application/json")
  const answer = await fetch(target, { method: row.method, headers, ...(hasBody ? { body: JSON.stringify(body) } : {}) })
  return { status: answer.status, headers: answer.headers, body: await answer.text() }
}
