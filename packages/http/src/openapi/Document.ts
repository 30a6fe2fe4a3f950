/** The OpenAPI document of an API: what the contract generates, with headers, examples, links and errors. */
import { Credits, Money } from "@millrace/core"
import { Schema } from "effect"
import * as ApiPaths from "../ApiPaths.ts"
import { type Fields, PREFIX, type Servable } from "../Endpoint.ts"
import { codesOf, type ErrorBody, type ErrorStatus, termsOf } from "../ErrorCode.ts"
import * as Headers from "./Headers.ts"

// biome-ignore lint/suspicious/noExplicitAny: the document is generated, so its shape is not known
type Json = any

/** The host's description of its service. */
export interface Info {
  /** `Millrace` by default. */
  readonly title?: string
  /** Markdown. */
  readonly description?: string
  /** Of the contract: `1.0.0` by default. */
  readonly version?: string
  /** Of the service: Apache-2.0 by default. */
  readonly license?: { readonly name: string; readonly identifier?: string; readonly url?: string }
  readonly contact?: { readonly name?: string; readonly url?: string; readonly email?: string }
  /** The addresses of the API; by default the server of the document. */
  readonly servers?: ReadonlyArray<{ readonly url: string; readonly description?: string }>
}

/** The version of the contract. */
export const VERSION = "1.0.0"

const descriptionIn = (
  money: Money.Money
): string => `One API of many small operations, each billed in ${money.credits}: 1 ${money.credit} is worth ${money.value} ${money.currency}.

Every call carries \`Authorization: Bearer <API key>\`. A success is wrapped in an envelope of \`status\`, \`data\` and \`request\`; an error is an object with a stable \`code\`. Calls that fail cost nothing. Each billed answer says in \`X-Credits-Charged\` what it cost, and in \`X-Credits-Balance\` what is left. A call sent again under the same \`Idempotency-Key\` runs once. An account whose address was not verified yet makes ten free calls; \`X-Trial-Remaining\` says how many remain.`

const DESCRIPTION = descriptionIn(Money.STANDARD)

/** The price of an operation for each unit. */
export interface Price {
  readonly price: Credits.Credits
  readonly unit: string
}

/** The document in the host's money: with what it is worth, and the price of each operation, as `x-price` and in words. */
export const priced = (spec: Json, prices: ReadonlyMap<string, Price>, money: Money.Money): Json => ({
  ...spec,
  // A host's own description stays
  info: spec.info.description === DESCRIPTION ? { ...spec.info, description: descriptionIn(money) } : spec.info,
  paths: mapValues(spec.paths, (item) =>
    mapValues(item, (endpoint) => {
      const found = prices.get(endpoint.operationId)
      if (found === undefined) return endpoint
      const { price, unit } = found
      const words = price === 0 ? "Free." : `${Money.text(price, money)} for each ${unit}.`
      const stated = { credits: Credits.toDecimal(price), unit, value: Money.worthOf(price, money), currency: money.currency }
      return { ...endpoint, description: `${endpoint.description}\n\n**Price:** ${words}`, "x-price": stated }
    })
  )
})

/** The document with further security schemes. */
export const secured = (spec: Json, schemes: Readonly<Record<string, Json>>): Json => ({
  ...spec,
  components: { ...spec.components, securitySchemes: { ...spec.components.securitySchemes, ...schemes } }
})

/** The document with the place of what operators read, which it does not describe. */
export const withOperator = (spec: Json, place: string): Json => ({ ...spec, "x-operator": place })

/** The document where a session may stand for an API key. `securityOf`: what a session needs for a method. */
export const withSessions = (
  spec: Json,
  schemes: Readonly<Record<string, Json>>,
  securityOf: (method: string) => ReadonlyArray<Json>
): Json => ({
  ...secured(spec, schemes),
  paths: mapValues(spec.paths, (item) =>
    mapValues(item, (endpoint, method) =>
      endpoint.security?.some((scheme: Json) => "apiKey" in scheme)
        ? { ...endpoint, security: [...endpoint.security, ...securityOf(method)] }
        : endpoint
    )
  )
})

interface Described {
  readonly operation: Servable
  readonly isPublic: boolean
}

/** Completes the document that a contract generates. `described`: the operations of the contract. */
export const complete = (spec: Json, described: ReadonlyArray<Described>, info: Info): Json => {
  const operations = new Map(described.map((one) => [one.operation.key, one]))
  const uses = new Set<Headers.RequestHeader>()
  for (const item of Object.values<Json>(spec.paths)) {
    for (const [method, endpoint] of Object.entries<Json>(item)) {
      const described = operations.get(endpoint.operationId)
      item[method] = described === undefined ? ofSystem(endpoint) : ofOperation(endpoint, described, operations, uses)
    }
  }
  const statuses = new Set(
    Object.values<Json>(spec.paths).flatMap((item) =>
      Object.values<Json>(item).flatMap(({ responses }) => Object.keys(responses).map(Number).filter(isErrorStatus))
    )
  )
  const responses = Object.fromEntries([...statuses].sort((a, b) => a - b).map((status) => [`Error${status}`, errorResponse(status)]))
  const schemas = mapValues(spec.components.schemas, lenient)
  for (const status of statuses) schemas[`Error${status}`].examples = codesOf(status).map(exampleOf)
  return withoutNoise({
    ...spec,
    info: {
      title: info.title ?? "Millrace",
      version: info.version ?? VERSION,
      description: info.description ?? DESCRIPTION,
      contact: info.contact ?? { name: "The operator of this service" },
      license: info.license ?? { name: "Apache-2.0", identifier: "Apache-2.0" }
    },
    tags: spec.tags.map((tag: Json) => ({ description: `The operations of ${tag.name}.`, ...tag })),
    servers: info.servers ?? [{ url: "/", description: "Where this document is served" }],
    components: {
      schemas,
      responses,
      headers: Headers.RESPONSE_HEADERS,
      parameters: Object.fromEntries([...uses].map((name) => [name, headerParameter(Headers.REQUEST_HEADERS[name])])),
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "bearer",
          bearerFormat: "mr_live_<keyId>_<secret>",
          description: "An API key of the account. It is shown once, when it is issued."
        }
      }
    }
  })
}

// operations

/** An endpoint that is no operation and needs no key. */
const ofSystem = (endpoint: Json): Json => ({
  ...endpoint,
  parameters: endpoint.parameters.map(plainParameter),
  security: endpoint.security ?? [],
  ...(endpoint.requestBody === undefined ? {} : { requestBody: open(endpoint.requestBody) }),
  responses: mapValues(endpoint.responses, (response: Json, status) =>
    isSharedError(response)
      ? errorReference(Number(status))
      : { ...open(response), description: DESCRIPTIONS[status] ?? response.description, headers: headersOf(Headers.systemHeaders) }
  )
})

const ofOperation = (
  endpoint: Json,
  { operation, isPublic }: Described,
  operations: ReadonlyMap<string, Described>,
  uses: Set<Headers.RequestHeader>
): Json => {
  const { route, summary, description = `${summary}.`, success, example } = operation
  const input = example === undefined ? undefined : encodedInput(route, example.input)
  const data =
    example === undefined ? undefined : ApiPaths.of(operation).inValue(Schema.encodeUnknownSync(Schema.toCodecJson(success))(example.data))
  const isJob = operation._tag === "Job"
  const isFile = operation._tag === "File"
  const waits = isJob || (operation._tag === "Call" && operation.waits === true)
  const contentTypes = isFile ? operation.contentTypes : []
  const names = Headers.requestHeaders({ isPublic, waits, isFile })
  for (const name of names) uses.add(name)
  return {
    ...endpoint,
    summary,
    description,
    security: isPublic ? [] : [{ apiKey: [] }],
    parameters: [
      ...endpoint.parameters.map((parameter: Json) => withExample(typed(parameter, route), input?.[parameter.name])),
      ...names.map((name) => ({ $ref: `#/components/parameters/${name}` }))
    ],
    ...(endpoint.requestBody === undefined
      ? {}
      : { requestBody: requestBody(endpoint.requestBody, Object.keys(route.body), input, operation) }),
    responses: mapValues(isFile ? { ...FILE, ...endpoint.responses } : endpoint.responses, (response: Json, status) =>
      Number(status) >= 400
        ? errorReference(Number(status))
        : isFile
          ? fileResponse(contentTypes, status)
          : {
              ...open(response),
              description: summary,
              headers: headersOf([
                ...Headers.successHeaders(isPublic),
                ...(isJob ? Headers.jobHeaders : waits ? Headers.waitHeaders : []),
                ...(operation._tag === "Call" && operation.cached === true ? Headers.cacheHeaders : [])
              ]),
              content: {
                "application/json": {
                  schema: lenient(response.content["application/json"].schema),
                  ...(data === undefined ? {} : { example: envelope(operation, data, input) })
                }
              },
              ...linksOf(operation, operations)
            }
    )
  }
}

/** The statuses of a download that are no errors. */
const FILE: Readonly<Record<string, string>> = {
  200: "The file.",
  206: "The requested part of the file.",
  304: "The caller has the file already."
}

const fileResponse = (contentTypes: ReadonlyArray<string>, status: string): Json => ({
  description: FILE[status],
  headers: headersOf([...Headers.fileHeaders, ...(status === "206" ? (["Content-Range"] as const) : [])]),
  ...(status === "304"
    ? {}
    : { content: Object.fromEntries(contentTypes.map((type) => [type, { schema: { type: "string", format: "binary" } }])) })
})

const requestBody = (body: Json, names: ReadonlyArray<string>, input: Json, { summary }: Servable): Json => {
  const { schema } = body.content["application/json"]
  const sent = input === undefined ? undefined : Object.fromEntries(Object.entries(input).filter(([name]) => names.includes(name)))
  return {
    description: summary,
    required: (schema.required ?? []).length > 0,
    content: { "application/json": { schema, ...(sent === undefined ? {} : { example: sent }) } }
  }
}

const envelope = ({ route, secret }: Servable, data: Json, input: Json): Json => ({
  status: "success",
  data,
  request: {
    id: Headers.EXAMPLE_ID,
    method: route.method,
    path: filled(route.path, input),
    input: Object.keys(input).length === 0 ? [] : mapValues(input, (value: Json, name) => (secret.includes(name) ? "***" : value))
  }
})

const filled = (path: string, input: Json): string =>
  `${PREFIX}${path.replaceAll(/:(\w+)/gu, (_, name: string) => encodeURIComponent(String(input[name])))}`

const encodedInput = ({ params, query, body }: Servable["route"], input: object): Json => {
  const fields: Fields = { ...params, ...query, ...body }
  return Object.keys(fields).length === 0 ? {} : Schema.encodeUnknownSync(Schema.toCodecJson(Schema.Struct(fields)))(input)
}

const linksOf = ({ links = [] }: Servable, operations: ReadonlyMap<string, Described>): Json => {
  const served = links.flatMap(({ operation, parameters }) => {
    const description = operations.get(operation)?.operation.summary
    const pointers = mapValues(parameters, (pointer: string) => `$response.body#/data${pointer}`)
    return description === undefined ? [] : [[operation, { operationId: operation, description, parameters: pointers }] as const]
  })
  return served.length === 0 ? {} : { links: Object.fromEntries(served) }
}

// parameters

const headerParameter = ({ name, ...header }: (typeof Headers.REQUEST_HEADERS)[Headers.RequestHeader]): Json => ({
  name,
  in: "header",
  required: false,
  ...header
})

/** A parameter with the schema of its value; the generated schema is that of the text in the URL. */
const typed = (parameter: Json, { params, query }: Servable["route"]): Json => {
  const field = (parameter.in === "path" ? params : query)[parameter.name]
  return plainParameter(field === undefined ? parameter : { ...parameter, schema: jsonSchema(field) })
}

const plainParameter = (parameter: Json): Json =>
  parameter.schema?.type === "array" && parameter.in === "query" ? { ...parameter, style: "form", explode: true } : parameter

const withExample = (parameter: Json, example: unknown): Json => (example === undefined ? parameter : { ...parameter, example })

const jsonSchema = (field: Schema.Top): Json => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(Schema.toType(Schema.Struct({ field })))
  const { field: own } = (schema as Json).properties
  return Object.keys(definitions).length === 0 ? own : { ...own, $defs: definitions }
}

// answers

const headersOf = (names: ReadonlyArray<Headers.ResponseHeader>): Json =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** Allows unknown fields, which later versions may add. */
const lenient = (schema: Json): Json => {
  if (Array.isArray(schema)) return schema.map(lenient)
  if (typeof schema !== "object" || schema === null) return schema
  const { additionalProperties, ...rest } = schema
  return mapValues(additionalProperties === false ? rest : schema, lenient)
}

const open = (response: Json): Json => ({
  ...response,
  ...(response.content === undefined ? {} : { content: mapValues(response.content, lenient) })
})

const DESCRIPTIONS: Readonly<Record<string, string>> = { 200: "Success.", 503: "The process is not ready." }

const isErrorStatus = (status: number): status is ErrorStatus => codesOf(status).length > 0

const isSharedError = (response: Json): boolean =>
  typeof response.content?.["application/json"]?.schema?.$ref === "string" &&
  response.content["application/json"].schema.$ref.startsWith("#/components/schemas/Error")

const errorReference = (status: number): Json => ({ $ref: `#/components/responses/Error${status}` })

const exampleOf = (code: ErrorBody["error"]["code"]): ErrorBody => ({
  error: { code, message: termsOf(code).means, request_id: Headers.EXAMPLE_ID }
})

const errorResponse = (status: ErrorStatus): Json => ({
  description: codesOf(status)
    .map((code) => `\`${code}\`: ${termsOf(code).means}`)
    .join("\n\n"),
  headers: headersOf(Headers.errorHeaders(status)),
  content: {
    "application/json": {
      schema: { $ref: `#/components/schemas/Error${status}` },
      examples: Object.fromEntries(codesOf(status).map((code) => [code, { summary: termsOf(code).means, value: exampleOf(code) }]))
    }
  }
})

// JSON

const mapValues = (record: object, f: (value: Json, name: string) => Json): Json =>
  Array.isArray(record)
    ? record.map((value, index) => f(value, String(index)))
    : Object.fromEntries(Object.entries(record).map(([name, value]) => [name, f(value, name)]))

/** Simplifies generated schemas. */
const withoutNoise = (value: Json): Json => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(withoutNoise)
  const { anyOf, ...rest } = value
  if (Array.isArray(anyOf) && anyOf.length === 1) return withoutNoise({ ...anyOf[0], ...rest })
  if (value.type === "array" && !("items" in value)) return withoutNoise({ ...value, items: {} })
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, inner]) => !isSafeBound(name, inner))
      .map(([name, inner]) => [name, withoutNoise(inner)])
  )
}

/** Whether a bound is merely that of JavaScript's safe integers. */
const isSafeBound = (name: string, value: unknown): boolean =>
  (name === "minimum" && value === Number.MIN_SAFE_INTEGER) || (name === "maximum" && value === Number.MAX_SAFE_INTEGER)
