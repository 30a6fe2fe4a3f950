/** Reads request bodies: JSON in UTF-8, limited in size while they arrive, and limited in depth. */
import { ByteSize, Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { BodyUnreadable, MalformedJson, PayloadTooLarge, UnsupportedMediaType } from "./Refusal.ts"

/** A body as text and as the JSON value that it encodes. */
export interface Body {
  /** Empty when the request has no body. */
  readonly text: string
  readonly json: unknown
}

const NONE: Body = { text: "", json: undefined }

/** The deepest nesting of objects and arrays: more than any operation needs, less than would overflow the stack. */
const MAX_DEPTH = 64

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Refuses a request whose Content-Length exceeds the limit, before anything else is done for it. `limit` in bytes. */
export const checkLength = ({ headers }: HttpServerRequest.HttpServerRequest, limit: number): Effect.Effect<void, PayloadTooLarge> =>
  Number(headers["content-length"] ?? 0) > limit ? Effect.fail(new PayloadTooLarge({ limit })) : Effect.void

/** The bytes of a body, whatever they are. Reads at most `limit` bytes. */
export const readBytes = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number
): Effect.Effect<Uint8Array<ArrayBuffer>, PayloadTooLarge | BodyUnreadable> =>
  hasBody(request)
    ? request.arrayBuffer.pipe(
        Effect.provideService(HttpServerRequest.MaxBodySize, ByteSize.bytes(limit)),
        Effect.mapError(({ reason }) =>
          reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge" ? new PayloadTooLarge({ limit }) : new BodyUnreadable()
        ),
        Effect.map((bytes) => new Uint8Array(bytes))
      )
    : Effect.succeed(new Uint8Array())

/** The body of a request. Reads at most `limit` bytes. */
export const read = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number
): Effect.Effect<Body, PayloadTooLarge | UnsupportedMediaType | MalformedJson | BodyUnreadable> =>
  Effect.flatMap(readBytes(request, limit), (bytes) => (bytes.byteLength === 0 ? Effect.succeed(NONE) : parse(request, bytes)))

/** An HTTP/1.1 request without either header has no body (RFC 9112, section 6.3). A web request may have one. */
const hasBody = ({ headers, source }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["transfer-encoding"] !== undefined ||
  Number(headers["content-length"] ?? 0) > 0 ||
  (headers["content-length"] === undefined && "body" in source && source.body instanceof ReadableStream)

const parse = Effect.fnUntraced(function* ({ headers }: HttpServerRequest.HttpServerRequest, bytes: Uint8Array<ArrayBuffer>) {
  if (!isJson(headers["content-type"]) || !isIdentity(headers["content-encoding"])) return yield* new UnsupportedMediaType()
  const text = yield* attempt("it is not UTF-8", () => decoder.decode(bytes))
  const json = yield* attempt("it does not parse", (): unknown => JSON.parse(text))
  if (isDeeper(json, MAX_DEPTH)) return yield* new MalformedJson({ reason: `it is nested more than ${MAX_DEPTH} levels deep` })
  return { text, json }
})

/** Replaces the message of a parser, which quotes the body. */
const attempt = <A>(reason: string, evaluate: () => A): Effect.Effect<A, MalformedJson> =>
  Effect.try({ try: evaluate, catch: () => new MalformedJson({ reason }) })

/** A body without a content type is taken for JSON. */
const isJson = (contentType = "application/json"): boolean => {
  const [type = "", ...parameters] = contentType
    .toLowerCase()
    .split(";")
    .map((part) => part.trim())
  const charset = parameters.find((parameter) => parameter.startsWith("charset="))?.replaceAll('"', "")
  return (
    (type === "application/json" || /^application\/[\w.+-]+\+json$/u.test(type)) && (charset === undefined || charset === "charset=utf-8")
  )
}

const isIdentity = (encoding = "identity"): boolean => encoding.trim().toLowerCase() === "identity"

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === "object" && value !== null && (levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1)))
