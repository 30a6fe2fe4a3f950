/**
 * Requests made of nothing but the OpenAPI document: good ones, and bad ones by a change of a good one. What they should be answered is
 * in the document, too.
 */
import fc from "fast-check"

/** JSON of the document. */
// biome-ignore lint/suspicious/noExplicitAny: it is walked, not known
export type Json = any

export interface Request {
  readonly operationId: string
  readonly method: string
  /** Of the path and the query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** As it is sent. */
  readonly body: string | undefined
}

// values

const MAX_TEXT = 400

/** What the schema takes. */
const good = (schema: Json, document: Json): fc.Arbitrary<Json> => {
  const { $ref, anyOf, type, pattern, minLength = 0, maxLength = MAX_TEXT, minimum, maximum, items, minItems = 0, maxItems = 8 } = schema
  if ($ref !== undefined) return good(resolve($ref, document), document)
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((option: Json) => good(option, document)))
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  switch (type) {
    case "string":
      return pattern === undefined
        ? fc.string({ minLength, maxLength: Math.min(maxLength, MAX_TEXT), unit: "grapheme" })
        : fc.stringMatching(new RegExp(pattern, "u"))
    case "integer":
      return fc.integer({ min: minimum ?? -1_000, max: maximum ?? 1_000 })
    case "number":
      return fc.double({ min: minimum ?? -1e6, max: maximum ?? 1e6, noNaN: true })
    case "boolean":
      return fc.boolean()
    case "array":
      return fc.array(good(items, document), { minLength: minItems, maxLength: Math.min(maxItems, minItems + 8) })
    case "object":
      return objectOf(schema, document, (inner) => good(inner, document))
    case "null":
      return fc.constant(null)
    default:
      return fc.jsonValue()
  }
}

const objectOf = ({ properties = {}, required = [] }: Json, _document: Json, value: (schema: Json) => fc.Arbitrary<Json>) =>
  fc.record(Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, value(schema)])), { requiredKeys: required })

const resolve = (ref: string, document: Json): Json =>
  ref
    .slice(2)
    .split("/")
    .reduce((value, part) => value[part.replaceAll("~1", "/").replaceAll("~0", "~")], document)

/** What nobody should send. */
const bad: fc.Arbitrary<Json> = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.constantFrom<Json>(
    null,
    true,
    -1,
    0,
    1e308,
    2 ** 53,
    0.1 + 0.2,
    "",
    " ",
    "\u0000",
    "\ud800",
    "\u202e",
    "NaN",
    "__proto__",
    "'; DROP TABLE events; --",
    "../../etc/passwd",
    "$(reboot)",
    "%00%0d%0a",
    "<script>alert(1)</script>",
    "a".repeat(60_000),
    "é".repeat(600),
    "(".repeat(3_000),
    [],
    {},
    [[[[[[]]]]]],
    { constructor: { prototype: {} } }
  ),
  fc.string({ unit: "binary", maxLength: 300 })
)

const any = (schema: Json, document: Json): fc.Arbitrary<Json> =>
  fc.oneof({ arbitrary: good(schema, document), weight: 4 }, { arbitrary: bad, weight: 1 }, { arbitrary: atBounds(schema), weight: 1 })

/** Just inside and just outside. */
const atBounds = ({ minLength, maxLength, minimum, maximum, items, minItems, maxItems }: Json): fc.Arbitrary<Json> => {
  const around = (bound: number | undefined) => (bound === undefined ? [] : [bound - 1, bound, bound + 1])
  const lengths = [...around(minLength), ...around(maxLength)].filter((length) => length >= 0)
  const sizes = [...around(minItems), ...around(maxItems)].filter((size) => size >= 0)
  const values = [
    ...lengths.map((length) => "a".repeat(length)),
    ...around(minimum),
    ...around(maximum),
    ...sizes.map((size) => Array.from({ length: size }, () => (items?.type === "string" ? "a@example.org" : 1)))
  ]
  return values.length === 0 ? bad : fc.constantFrom(...values)
}

// requests

const text = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value))

/** A lone surrogate has no place in a URL. */
const encode = (value: Json): string => encodeURIComponent(text(value).toWellFormed())

const parameters = (operation: Json, place: "path" | "query", document: Json): fc.Arbitrary<Readonly<Record<string, Json>>> => {
  const own = operation.parameters.filter((parameter: Json) => parameter.in === place)
  // Where a part of a path is empty or a dot segment, it is another path
  const isPart = (value: Json) => !/^\.{0,2}$/u.test(text(value))
  const values = (schema: Json) => (place === "path" ? any(schema, document).filter(isPart) : any(schema, document))
  return fc.record(Object.fromEntries(own.map(({ name, schema }: Json) => [name, values(schema)])), {
    requiredKeys: place === "path" ? own.map(({ name }: Json) => name) : []
  })
}

const queryOf = (query: Readonly<Record<string, Json>>, extra: string): string => {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((item) => `${encodeURIComponent(name)}=${encode(item)}`)
  )
  const all = [...pairs, ...(extra === "" ? [] : [extra])].join("&")
  return all === "" ? "" : `?${all}`
}

const bodies = (operation: Json, document: Json): fc.Arbitrary<string | undefined> => {
  const schema = operation.requestBody?.content["application/json"].schema
  if (schema === undefined) return fc.option(fc.constantFrom("{}", "[]", '{"unknown":1}', "junk"), { nil: undefined, freq: 8 })
  const fields = objectOf(schema, document, (inner) => any(inner, document))
  return fc.oneof(
    { arbitrary: good(schema, document).map((value) => JSON.stringify(value)), weight: 5 },
    { arbitrary: fields.map((value) => JSON.stringify(value)), weight: 5 },
    { arbitrary: fc.tuple(fields, bad).map(([value, more]) => JSON.stringify({ ...value, more })), weight: 1 },
    { arbitrary: bad.map((value) => JSON.stringify(value)), weight: 1 },
    { arbitrary: fields.map((value) => JSON.stringify(value).slice(0, -1)), weight: 1 },
    {
      arbitrary: fc.constantFrom(`${"[".repeat(5_000)}${"]".repeat(5_000)}`, '{"__proto__":{"text":"x"}}', '{"text":"a","text":1}'),
      weight: 1
    },
    { arbitrary: fc.constant(undefined), weight: 1 }
  )
}

/** Printable, for it travels in a header. */
const word = fc.string({ unit: "grapheme-ascii", maxLength: 300 })

const headers = (keys: ReadonlyArray<string>): fc.Arbitrary<Readonly<Record<string, string>>> =>
  fc.record(
    {
      authorization: fc.oneof(
        { arbitrary: fc.constantFrom(...keys.map((key) => `Bearer ${key}`)), weight: 12 },
        { arbitrary: fc.constantFrom("Bearer", "Basic dTpw", "Bearer mr_live_x_y", `Bearer ${keys[0]}x`), weight: 1 }
      ),
      "idempotency-key": fc.oneof(
        { arbitrary: fc.constantFrom('"one"', "two", "three", '"', "a,b", ""), weight: 1 },
        { arbitrary: word, weight: 1 }
      ),
      "x-max-credits": fc.constantFrom("0", "0.1", "1000", "-1", "1e3", "0.0001", "NaN", ""),
      prefer: fc.constantFrom("wait=20", "respond-async", "wait=-1", "junk"),
      "content-type": fc.constantFrom(
        "application/json",
        "application/json; charset=utf-8",
        "text/plain",
        "multipart/form-data; boundary=x",
        ""
      ),
      "content-encoding": fc.constantFrom("identity", "gzip"),
      "x-request-id": word,
      traceparent: fc.constantFrom("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-0-0-0", "ff"),
      accept: fc.constantFrom("application/xml", "*/*"),
      expect: fc.constant("the unexpected")
    },
    { requiredKeys: [] }
  )

/** Most have a good key and little else; the rest anything. */
const headersFor = (keys: ReadonlyArray<string>) =>
  fc.oneof(
    { arbitrary: fc.record({ authorization: fc.constantFrom(...keys.map((key) => `Bearer ${key}`)) }), weight: 3 },
    { arbitrary: headers(keys), weight: 1 }
  )

/** Whether an answer ends by itself: a stream of events does not, and has tests of its own. */
const ends = ({ responses }: Json): boolean => responses[200]?.content?.["text/event-stream"] === undefined

/** Requests to any operation of the document whose answers end, with any of the keys. */
export const requests = (document: Json, keys: ReadonlyArray<string>): fc.Arbitrary<Request> =>
  fc.oneof(
    ...Object.entries<Json>(document.paths).flatMap(([path, item]) =>
      Object.entries<Json>(item)
        .filter(([, operation]) => ends(operation))
        .map(([method, operation]) =>
          fc
            .record({
              path: parameters(operation, "path", document),
              query: parameters(operation, "query", document),
              extra: fc.constantFrom("", "", "", "unknown=1", "%zz", "__proto__[x]=1", "a[]=1&a=2", "&&&", "=x"),
              headers: headersFor(keys),
              body: bodies(operation, document)
            })
            .map(({ path: values, query, extra, headers, body }) => ({
              operationId: operation.operationId,
              method: method.toUpperCase(),
              target: path.replaceAll(/\{(\w+)\}/gu, (_, name: string) => encode(values[name])) + queryOf(query, extra),
              headers: printable(headers),
              body
            }))
        )
    )
  )

/** What Node lets out. */
const printable = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replaceAll(/[^\t\x20-\x7e]/gu, "")]))
