/** An operation that replies with a file. Its bytes are streamed, so it is never whole in memory. */
import { type Effect, Schema, type Stream } from "effect"
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
  /** Of a page to be shown, rather than a file to be saved: what it may load and run, as a `Content-Security-Policy`. */
  readonly policy?: string
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

export interface File<Key extends string, Rt extends Contract.Route, E extends OperationError, R>
  extends Contract.Contract<Key, Rt, typeof FileInfo, E, R> {
  readonly _tag: "File"
  /** The media types of its files. */
  readonly contentTypes: ReadonlyArray<string>
  /** Finds the file. */
  readonly open: (input: Contract.Input<Rt>, caller: Contract.Caller) => Effect.Effect<Download, E, R>
}

type Get = { readonly method: "GET" }

const EXAMPLE = { size: 146_515, tag: "3f5a7c9b1d2e" } as const

/** Defines an operation that replies with a file. Its time limit is 30 seconds by default. */
export const file = <
  const Key extends string,
  const O extends Pick<Contract.RouteOptions, "path" | "params" | "query">,
  EOpen extends OperationError,
  ROpen,
  ECheck extends OperationError = never,
  RCheck = never,
  RConfigured = never
>(
  key: Key,
  options: Omit<Contract.Options<O & Get, typeof FileInfo, ECheck, RCheck, RConfigured>, "route" | "success" | "example"> &
    Pick<File<Key, Contract.RouteOf<O & Get>, EOpen, ROpen>, "contentTypes" | "open"> & {
      readonly route: O
      /** An example input, for the documentation. */
      readonly example?: NoInfer<Contract.Input<Contract.RouteOf<O & Get>>>
    }
): File<Key, Contract.RouteOf<O & Get>, EOpen | ECheck, ROpen | RCheck | RConfigured> => {
  const { contentTypes, example, open, ...described } = options
  const route: O & Get = { ...options.route, method: "GET" }
  const contract = Contract.make(
    key,
    {
      ...described,
      route,
      success: FileInfo,
      ...(example === undefined ? {} : { example: { input: example, data: { content_type: contentTypes[0] ?? "", ...EXAMPLE } } })
    },
    "30 seconds"
  )
  return { ...contract, _tag: "File", contentTypes, open }
}
