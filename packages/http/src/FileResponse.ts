/** Answers with a file: streamed, whole or one range of it, or 304 to a client that has it. RFC 9110, sections 13 and 14. */
import type { Operation, OperationError } from "@millrace/core"
import { Effect, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { RangeNotSatisfiable } from "./Refusal.ts"

/** A range of bytes, both ends included. */
export interface Span {
  readonly first: number
  readonly last: number
}

const RANGE = /^bytes=(?<first>\d*)-(?<last>\d*)$/u

/**
 * The range that a `Range` header asks for. Undefined without a header, with one that is not understood, or with several ranges: the
 * whole file is answered then. "unsatisfiable" for a range that begins past the end.
 */
export const spanOf = (header: string | undefined, size: number): Span | undefined | "unsatisfiable" => {
  const { first = "", last = "" } = RANGE.exec(header?.trim() ?? "")?.groups ?? {}
  if (first === "" && last === "") return undefined
  if (first === "") {
    const length = Math.min(Number(last), size)
    return length === 0 ? "unsatisfiable" : { first: size - length, last: size - 1 }
  }
  if (last !== "" && Number(last) < Number(first)) return undefined
  if (Number(first) >= size) return "unsatisfiable"
  return { first: Number(first), last: last === "" ? size - 1 : Math.min(Number(last), size - 1) }
}

/** Whether a list of entity tags contains this one, by weak comparison. */
const names = (header: string | undefined, tag: string): boolean =>
  (header ?? "").split(",").some((item) => item.trim() === "*" || item.trim().replace(/^W\//u, "") === tag)

export const respond = Effect.fnUntraced(function* (
  { headers: sent }: HttpServerRequest.HttpServerRequest,
  { contentType, filename, policy, read, size, tag }: Operation.Download
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, RangeNotSatisfiable | OperationError> {
  const etag = `"${tag}"`
  const headers = {
    etag,
    "accept-ranges": "bytes",
    "cache-control": "private, no-store",
    "content-disposition": `${policy === undefined ? "attachment" : "inline"}; filename="${filename}"`,
    ...(policy === undefined ? {} : { "content-security-policy": policy, "referrer-policy": "no-referrer" })
  }
  if (names(sent["if-none-match"], etag)) return HttpServerResponse.empty({ status: 304, headers })
  // A range of a file that has changed would not fit the part that the client has
  const isStale = sent["if-range"] !== undefined && sent["if-range"].trim() !== etag
  const span = isStale ? undefined : spanOf(sent["range"], size)
  if (span === "unsatisfiable") return yield* new RangeNotSatisfiable({ size })
  const bytes = yield* read(span === undefined ? undefined : { offset: span.first, length: span.last - span.first + 1 })
  return HttpServerResponse.stream(Stream.orDie(bytes), {
    status: span === undefined ? 200 : 206,
    contentType,
    headers: {
      ...headers,
      "content-length": String(span === undefined ? size : span.last - span.first + 1),
      ...(span === undefined ? {} : { "content-range": `bytes ${span.first}-${span.last}/${size}` })
    }
  })
})
