/**
 * The routes of operations as data: a line such as `GET /bin/:bin` for each key. A client needs nothing else at run time, so a web page
 * loads neither the code nor the schemas of operations.
 */
import type { Operation } from "@millrace/core"
import type { PREFIX as ServedAt } from "../Endpoint.ts"

/** The path below which all operations are. */
export const PREFIX: typeof ServedAt = "/api/v1"

/** The part of an operation that a client's types need. */
export interface Described {
  readonly key: string
  readonly route: { readonly method: string; readonly path: string; readonly query: object }
  readonly _tag: string
}

/**
 * The line of an operation. With a body, it names the fields of the query: `POST /work/:room?times&tag`. An operation that answers with a
 * file ends with that: `GET /work/:job/artifact as file`.
 */
export type Line<Op> = Op extends { readonly _tag: "File" } ? `${Plain<Op>} as file` : Plain<Op>

type Plain<Op> = Op extends { readonly route: Operation.Route<infer M, infer P, infer _P, infer Query> }
  ? M extends "GET"
    ? `${M} ${P}`
    : keyof Query extends never
      ? `${M} ${P}`
      : `${M} ${P}?${string}`
  : never

/** The lines of operations, by key. Lines written by hand are checked with `satisfies Routes<...>`. */
export type Routes<Op extends Described> = { readonly [Key in Op["key"]]: Line<Extract<Op, { readonly key: Key }>> }

/** The lines of an API, as JSON: for a page that cannot import the operations themselves. */
export const routesOf = <Op extends Described>({ operations }: { readonly operations: ReadonlyArray<Op> }): Routes<Op> =>
  Object.fromEntries(operations.map((operation) => [operation.key, lineOf(operation)])) as Routes<Op>

const lineOf = ({ _tag, route: { method, path, query } }: Described): string => {
  const names = method === "GET" ? [] : Object.keys(query)
  return `${method} ${path}${names.length === 0 ? "" : `?${names.join("&")}`}${_tag === "File" ? FILE : ""}`
}

const FILE = " as file"

export interface Route {
  readonly method: string
  /** With `:parameters`. */
  readonly path: string
  /** Names of the fields in the query, beside a body. */
  readonly query: ReadonlyArray<string>
  /** Whether the answer is a file, and not JSON. */
  readonly isFile: boolean
}

const LINE = /^(?<method>[A-Z]+) (?<path>\/[^? ]*)(?:\?(?<query>\S+))?(?<file> as file)?$/u

export const parse = (line: string): Route => {
  const { method, path, query, file } = LINE.exec(line)?.groups ?? {}
  if (method === undefined || path === undefined) throw new TypeError(`Not a route: ${line}`)
  return { method, path, query: query?.split("&") ?? [], isFile: file !== undefined }
}
