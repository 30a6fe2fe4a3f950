/** An operation that replies with a file. Its bytes are streamed, so it is never whole in memory. */
import { type Duration, type Effect, Schema, type Stream } from "effect"
import type { GetFailure } from "../vault/BlobStore.ts"
import type { Range } from "../vault/SealedBlob.ts"
import * as Contract from "./Contract.ts"
import type { NotFound, OperationError, UpstreamUnavailable } from "./OperationError.ts"

/** A file to download, before any byte of it is read. */
export interface Download {
  readonly contentType: string
  /** Bytes of the whole file. */
  readonly size: number
  /** Identifies the content for ever: an entity tag without its quotes. */
  readonly tag: string
  readonly filename: string
  /** The bytes of a range, by default all; a range is cut at the end of the file. Fails before the first byte if the file is gone. */
  readonly read: (range?: Range) => Effect.Effect<Stream.Stream<Uint8Array, GetFailure>, NotFound | UpstreamUnavailable>
}

/** What the log records of a downloaded file. */
export const FileInfo = Schema.Struct({
  content_type: Schema.String,
  /** Bytes. */
  size: Schema.Int,
  /** Identifies the content. */
  tag: Schema.String
})

export interface File<
  Key extends string,
  P extends Contract.Path,
  Params extends Contract.Fields,
  Query extends Contract.Fields,
  E extends OperationError,
  R
> extends Contract.Contract<Key, "GET", P, Params, Query, {}, typeof FileInfo, E, R> {
  readonly _tag: "File"
  /** The media types of its files. */
  readonly contentTypes: ReadonlyArray<string>
  /** Finds the file. */
  readonly open: (input: Contract.Input<Params, Query, {}>, caller: Contract.Caller) => Effect.Effect<Download, E, R>
}

const EXAMPLE = { size: 146_515, tag: "3f5a7c9b1d2e" } as const

/** Defines an operation that replies with a file. Its time limit is 30 seconds by default. */
export const file = <
  const Key extends string,
  const P extends Contract.Path,
  EOpen extends OperationError,
  ROpen,
  Params extends Contract.Fields = {},
  Query extends Contract.Fields = {},
  ECheck extends OperationError = never,
  RCheck = never,
  RConfigured = never
>(
  key: Key,
  options: Omit<
    Contract.Options<"GET", P, Params, Query, {}, typeof FileInfo, ECheck, RCheck, RConfigured>,
    "route" | "success" | "example"
  > & {
    readonly route: { readonly path: P; readonly params?: Params; readonly query?: Query }
    readonly contentTypes: ReadonlyArray<string>
    readonly open: (input: Contract.Input<Params, Query, {}>, caller: Contract.Caller) => Effect.Effect<Download, EOpen, ROpen>
    readonly timeout?: Duration.Input
    /** An example input, for the documentation. */
    readonly example?: NoInfer<Contract.Input<Params, Query, {}>>
  }
): File<Key, P, Params, Query, EOpen | ECheck, ROpen | RCheck | RConfigured> => {
  const { contentTypes, example, open, route, timeout = "30 seconds", ...described } = options
  const contract = Contract.make(
    key,
    {
      ...described,
      route: { method: "GET" as const, ...route },
      success: FileInfo,
      ...(example === undefined ? {} : { example: { input: example, data: { content_type: contentTypes[0] ?? "", ...EXAMPLE } } })
    },
    timeout
  )
  return { ...contract, _tag: "File", contentTypes, open }
}
