/** Decodes the input of a call from path, query and body, reports all issues at once, and echoes it without secrets. */
import { Result, Schema, SchemaIssue } from "effect"
import type { Fields, Servable } from "./Endpoint.ts"

/** A field and the reason why it is invalid. */
export interface Issue {
  readonly field: string
  readonly message: string
}

/** The parts of a request, not decoded. */
export interface Sent {
  readonly params: Readonly<Record<string, string | undefined>>
  readonly query: Readonly<Record<string, string | ReadonlyArray<string>>>
  /** Undefined when the request has no body. */
  readonly body: unknown
}

export interface Input {
  /** The decoded input of the operation. */
  readonly value: object
  /** The fields that were sent and that the operation knows, for the envelope. */
  readonly echo: Readonly<Record<string, unknown>> | readonly []
}

/** The longest name of a field in a message, in characters: callers choose the names of unknown fields. */
const MAX_NAME = 100
const MASK = "***"

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    switch (issue._tag) {
      case "MissingKey":
        return "is required"
      case "UnexpectedKey":
        return UNKNOWN_FIELD
      default:
        return SchemaIssue.defaultLeafHook(issue)
    }
  }
})

/** Decodes one part of a request. */
type Decoder = (sent: object) => Result.Result<object, ReadonlyArray<Issue>>

/** `excess`: whether unknown fields are ignored, or reported as issues. */
const decoder = (fields: Fields, codecOf: (fields: Fields) => Schema.Codec<object, unknown>, excess: "ignore" | "error"): Decoder => {
  // A struct without fields would accept everything
  if (Object.keys(fields).length === 0) {
    return (sent) =>
      excess === "ignore" || Object.keys(sent).length === 0 ? Result.succeed({}) : Result.fail(Object.keys(sent).map(unknownField))
  }
  const decode = Schema.decodeUnknownResult(codecOf(fields), { errors: "all", onExcessProperty: excess })
  return (sent) =>
    Result.mapError(decode(sent), ({ issue }) =>
      issuesOf(issue).issues.map(({ path = [], message }) => ({
        field: nameOf(path.map((key) => String(typeof key === "object" ? key.key : key)).join(".")),
        message: message.charAt(0).toLowerCase() + message.slice(1)
      }))
    )
}

const UNKNOWN_FIELD = "is not a field of this operation"
const unknownField = (name: string): Issue => ({ field: nameOf(name), message: UNKNOWN_FIELD })
const nameOf = (name: string): string => name.slice(0, MAX_NAME)

const textual = (fields: Fields): Schema.Codec<object, unknown> => Schema.toCodecStringTree(Schema.Struct(fields))
const textualLists = (fields: Fields): Schema.Codec<object, unknown> => Schema.toCodecArrayFromSingle(textual(fields))
const structural = (fields: Fields): Schema.Codec<object, unknown> => Schema.toCodecJson(Schema.Struct(fields))

export const make = ({
  route,
  secret
}: Pick<Servable, "route" | "secret">): ((sent: Sent) => Result.Result<Input, ReadonlyArray<Issue>>) => {
  const query = decoder(route.query, textualLists, "ignore")
  const body = decoder(route.body, structural, "error")
  const params = decoder(route.params, textual, "ignore")
  const encode = Schema.encodeUnknownSync(structural({ ...route.params, ...route.query, ...route.body }))
  const secrets = new Set(secret)

  return (sent) => {
    const given = { query: withoutBrackets(sent.query), body: sent.body === undefined ? {} : sent.body, params: sent.params }
    // The path comes last, so that it names the resource even if another part has a field of the same name
    const parts = [query(given.query), isObject(given.body) ? body(given.body) : NOT_AN_OBJECT, params(given.params)]
    const value: object = {}
    for (const part of parts) {
      if (Result.isFailure(part)) return Result.fail(parts.flatMap((part) => (Result.isFailure(part) ? part.failure : [])))
      Object.assign(value, part.success)
    }
    // The echo leaves out defaults, which were not sent
    const echo: Array<[string, unknown]> = []
    for (const field of fieldsOf(encode(value))) if (isSent(given, field[0])) echo.push(masked(field, secrets))
    return Result.succeed({ value, echo: echo.length === 0 ? [] : Object.fromEntries(echo) })
  }
}

const isSent = ({ body, params, query }: Sent, name: string): boolean =>
  Object.hasOwn(params, name) || Object.hasOwn(query, name) || (isObject(body) && Object.hasOwn(body, name))

const NOT_AN_OBJECT = Result.fail([{ field: "body", message: "expected an object" }])

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null && !Array.isArray(value)

const fieldsOf = (value: unknown): ReadonlyArray<[string, unknown]> => (isObject(value) ? Object.entries(value) : [])

/** Merges `order[]=a` into `order=a`. */
const withoutBrackets = (query: Sent["query"]): Sent["query"] => {
  const names = Object.keys(query)
  if (!names.some((name) => name.endsWith("[]"))) return query
  const merged: Record<string, string | ReadonlyArray<string>> = Object.create(null)
  for (const name of names) {
    const plain = name.endsWith("[]") ? name.slice(0, -2) : name
    const [before, added] = [merged[plain], query[name] ?? []]
    merged[plain] = before === undefined ? added : [before, added].flat()
  }
  return merged
}

/** A field for the echo, with secrets and inline data masked. */
const masked = ([name, value]: readonly [string, unknown], secrets: ReadonlySet<string>): [string, unknown] => [
  name,
  secrets.has(name) ? MASK : shown(value, secrets)
]

const shown = (value: unknown, secrets: ReadonlySet<string>): unknown => {
  if (typeof value === "string") return value.startsWith("data:") ? MASK : value
  if (Array.isArray(value)) return value.map((item) => shown(item, secrets))
  return isObject(value) ? Object.fromEntries(Object.entries(value).map((field) => masked(field, secrets))) : value
}
