/** What the service publishes of itself says the same as the rows: OpenAPI over HTTP, each parameter with its place, type and bounds. */
import { Effect } from "effect"
import { expect, test } from "vitest"
import { host } from "./Host.ts"
import { send } from "./Requests.ts"
import { type Parameter, parametersOf, type Text } from "./Row.ts"
import { rows } from "./Rows.ts"

const BOUNDS = ["minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"]

/** What a row states, in the keywords of JSON Schema. */
const keywordsOf = (parameter: Parameter): object => {
  // Integers of an enumeration are numbers too
  if ("oneOf" in parameter) return { ...(parameter.type === "string" ? { type: "string" } : {}), enum: parameter.oneOf }
  const bounds = Object.entries(parameter).filter(([name]) => BOUNDS.includes(name))
  return { type: parameter.type === "strings" ? "array" : parameter.type, ...Object.fromEntries(bounds) }
}

/** A pattern says its bounds by what it lets through; where no lengths are known, by the sample and by what is malformed. */
const expectBounds = ({ malformed, minLength = 0, maxLength = 0, ofLength, sample = "" }: Text, pattern: string): void => {
  const matches = (text: string) => new RegExp(pattern, "u").test(text)
  if (ofLength === null) return expect([sample, ...malformed].filter(matches)).toEqual([sample])
  const ofLengths = [minLength - 1, minLength, maxLength, maxLength + 1].map((length) => matches(ofLength(length)))
  expect(ofLengths).toEqual([false, true, true, false])
}

/** What a row without input answers, as JSON. */
const read = Effect.fnUntraced(function* (key: string) {
  const row = rows.find((row) => row.key === key)
  if (row === undefined) throw new Error(`There is no row ${key}`)
  const { url } = yield* host
  const { status, body } = yield* Effect.promise(() => send(url, row, {}))
  expect(status).toBe(200)
  return JSON.parse(body)
})

test("the OpenAPI document describes each row as the specification does", () =>
  Effect.gen(function* () {
    const { openapi, info, paths, components } = yield* read("catalog.openapi")
    expect([openapi.slice(0, 4), info.version]).toEqual(["3.1.", "1.0.0"])
    const resolved = (thing: { readonly $ref?: string }) => {
      const [, kind = "", name = ""] = /^#\/components\/(\w+)\/([\w.-]+)$/u.exec(thing.$ref ?? "") ?? []
      return thing.$ref === undefined ? thing : components[kind][name]
    }

    for (const row of rows) {
      const operation = paths[row.path]?.[row.method.toLowerCase()]
      expect(operation, row.key).toBeDefined()
      expect(operation.operationId).toBe(row.key)
      expect(operation.security, row.key).toEqual(row.authentication === "bearer" ? [{ apiKey: [] }] : [])
      // 402 is for whoever pays
      expect(Object.keys(operation.responses), row.key).toEqual(expect.arrayContaining([row.status, ...row.errors].map(String)))
      const others = row.answer === "bytes" ? ["206", "304"] : []
      expect(Object.keys(operation.responses).filter((code) => code < "400")).toEqual([`${row.status}`, ...others])

      const fields = resolved(operation.requestBody?.content["application/json"].schema ?? {})
      for (const { name, place, parameter } of parametersOf(row)) {
        const declared =
          place === "body"
            ? { schema: fields.properties?.[name], required: fields.required?.includes(name) }
            : operation.parameters.map(resolved).find((one: Record<string, unknown>) => one["name"] === name && one["in"] === place)
        expect(declared?.schema, `${row.key} ${name}`).toBeDefined()
        expect(declared.required ?? false, `${row.key} ${name}`).toBe(parameter.required)
        // A service may have more bounds than the row states
        const { pattern, ...schema } = resolved(declared.schema)
        if (pattern === undefined || parameter.type !== "string" || "oneOf" in parameter) {
          expect(schema, `${row.key} ${name}`).toMatchObject(keywordsOf(parameter))
        } else {
          expectBounds(parameter, pattern)
        }
      }
    }
  }).pipe(Effect.scoped, Effect.runPromise))

test("the catalog states each served operation's path, price and availability", () =>
  Effect.gen(function* () {
    const { data } = yield* read("catalog.read")
    const entries = new Map(data.operations.map((entry: { readonly key: string }) => [entry.key, entry]))
    // The document is about operations, and none itself
    for (const { key, method, path, price } of rows.filter(({ answer }) => answer !== "document")) {
      expect(entries.get(key), key).toMatchObject({
        method,
        path: path.replace(/^\/api\/v1/u, ""),
        price: { credits: price?.credits ?? 0, version: 1 },
        availability: { available: true }
      })
    }
  }).pipe(Effect.scoped, Effect.runPromise))
