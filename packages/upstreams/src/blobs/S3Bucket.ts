/** Requests to one bucket of an S3-compatible service. */
import { BlobStore } from "@millrace/core"
import { type Duration, Effect, identity, Option, Redacted, Schema, Stream } from "effect"
import { S3Error, S3mini, S3ServiceError, type UploadPart } from "s3mini"

const { BlobNotFound, BlobUnavailable } = BlobStore
type BlobUnavailable = BlobStore.BlobUnavailable

export interface Options {
  /** The bucket's URL, such as `https://s3.eu-central-1.amazonaws.com/my-bucket`. */
  readonly bucketUrl: URL
  /** `auto` by default, which AWS itself does not accept. */
  readonly region?: string
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
  /** The prefix of names, such as `blobs/`; empty by default. */
  readonly prefix?: string
  /** The time limit of a request; a minute by default. A large blob takes many requests. */
  readonly timeLimit?: Duration.Input
}

/** Bytes of an object from `start`, and its size. */
export interface Block {
  readonly start: number
  readonly bytes: Uint8Array
  readonly total: number
}

export interface Upload {
  readonly name: string
  readonly uploadId: string
}

export type S3Bucket = ReturnType<typeof make>

/** The objects under the prefix, by the rest of their keys. An interrupted request closes its connection. */
export const make = (options: Options) => {
  const { prefix = "" } = options
  const request = requests(options)
  const keyOf = (name: string) => prefix + name
  return {
    put: (name: string, bytes: Buffer) => request((s3) => s3.putObject(keyOf(name), bytes)),
    /** Reads at most `length` bytes; fewer at the end of the object. */
    get: (name: string, start: number, length: number) =>
      request(
        (s3) =>
          s3.getObjectRaw(keyOf(name), false, start, start + length).then((reply) => blockOf(reply, start, length), emptyWhereOutOfRange),
        (cause) => (isMissing(cause) ? new BlobNotFound({ id: name }) : unavailable(cause))
      ),
    copy: (from: string, to: string) =>
      request((s3) => s3.copyObject(keyOf(from), keyOf(to), { additionalHeaders: copySource(s3.bucketName, keyOf(from)) })),
    /** Removes an object, if it exists. */
    remove: (name: string) =>
      Effect.asVoid(
        unless(
          isMissing,
          request((s3) => s3.deleteObject(keyOf(name)), identity)
        )
      ),
    list: listing(request, prefix),
    beginUpload: (name: string): Effect.Effect<Upload, BlobUnavailable> =>
      Effect.map(
        request((s3) => s3.getMultipartUploadId(keyOf(name))),
        (uploadId) => ({ name, uploadId })
      ),
    /** Parts are numbered from 1. */
    uploadPart: ({ name, uploadId }: Upload, number: number, bytes: Buffer) =>
      request((s3) => s3.uploadPart(keyOf(name), uploadId, bytes, number)),
    completeUpload: Effect.fnUntraced(function* ({ name, uploadId }: Upload, parts: ReadonlyArray<UploadPart>) {
      const { etag } = yield* request((s3) => s3.completeMultipartUpload(keyOf(name), uploadId, [...parts]))
      // A service may send the status of a success, and then an error in the body
      if (typeof etag !== "string") return yield* new BlobUnavailable({ reason: "the parts were not put together" })
    }),
    abortUpload: ({ name, uploadId }: Upload) => request((s3) => s3.abortMultipartUpload(keyOf(name), uploadId)),
    unfinishedUploads: unfinishedUploads(request, prefix)
  }
}

/** Makes requests. `catching` maps a failure, by default to `BlobUnavailable`. */
interface Request {
  <A>(run: (s3: S3mini) => Promise<A>): Effect.Effect<A, BlobUnavailable>
  <A, E>(run: (s3: S3mini) => Promise<A>, catching: (cause: unknown) => E): Effect.Effect<A, E | BlobUnavailable>
}

const requests =
  ({ bucketUrl, region = "auto", accessKeyId, secretAccessKey, timeLimit = "1 minute" }: Options): Request =>
  <A>(run: (s3: S3mini) => Promise<A>, catching: (cause: unknown) => unknown = unavailable): Effect.Effect<A, BlobUnavailable> =>
    Effect.tryPromise({
      try: (signal) =>
        run(
          new S3mini({
            accessKeyId,
            secretAccessKey: Redacted.value(secretAccessKey),
            endpoint: bucketUrl.href,
            region,
            fetch: (input, init) => fetch(input, { ...init, signal, redirect: "manual" })
          })
        ),
      catch: catching as (cause: unknown) => BlobUnavailable
    }).pipe(
      Effect.timeoutOrElse({
        duration: timeLimit,
        orElse: () => Effect.fail(new BlobUnavailable({ reason: "a request exceeds the time limit" }))
      })
    )

const reasonOf = (cause: unknown): string => {
  if (cause instanceof S3Error) return cause.message
  if (!(cause instanceof Error)) return "no cause given"
  return cause.cause instanceof Error ? reasonOf(cause.cause) : cause.message
}

const unavailable = (cause: unknown): BlobUnavailable =>
  cause instanceof BlobUnavailable ? cause : new BlobUnavailable({ reason: reasonOf(cause) })

/** Undefined if the request failed with such a cause. */
const unless = <A>(
  isExpected: (cause: unknown) => boolean,
  request: Effect.Effect<A, unknown>
): Effect.Effect<A | undefined, BlobUnavailable> =>
  Effect.catch(request, (cause) => (isExpected(cause) ? Effect.undefined : Effect.fail(unavailable(cause))))

/** The key does not exist. A missing bucket is a failure. */
const isMissing = (cause: unknown): boolean =>
  cause instanceof S3ServiceError && cause.status === 404 && cause.serviceCode !== "NoSuchBucket" && !cause.body?.includes("NoSuchBucket")

/** The service cannot list uploads. */
const isUnsupported = (cause: unknown): boolean => cause instanceof S3ServiceError && [400, 405, 501].includes(cause.status)

const blockOf = async (response: Response, start: number, length: number): Promise<Block> => {
  const range = /^bytes (\d+)-(\d+)\/(\d+)$/u.exec(response.headers.get("content-range") ?? "")
  const [first, last, total] = (range ?? []).slice(1).map(Number)
  if (first !== start || last === undefined || total === undefined || last - first >= length) {
    await response.body?.cancel()
    throw new Error("it answered with another range")
  }
  const bytes = new Uint8Array(await response.arrayBuffer())
  if (bytes.length !== last - first + 1) throw new Error("its answer is cut off")
  return { start, bytes, total }
}

/** The object exists but is empty or ends before the range, so it is not a blob. */
const emptyWhereOutOfRange = (cause: unknown): Block => {
  if (cause instanceof S3ServiceError && cause.status === 416) return { start: 0, bytes: new Uint8Array(), total: 0 }
  throw cause
}

/** Keeps slashes: `s3mini` escapes them, which some services refuse. */
const copySource = (bucket: string, key: string) => ({
  "x-amz-copy-source": `/${bucket}/${key.split("/").map(encodeURIComponent).join("/")}`
})

const listing = (request: Request, prefix: string): Stream.Stream<BlobStore.StoredBlob, BlobUnavailable> =>
  Stream.paginate(undefined, (token: string | undefined) =>
    Effect.flatMap(
      request((s3) => s3.listObjectsPaged("/", prefix, 1_000, token)),
      (page) => {
        if (page?.objects == null) return Effect.fail(new BlobUnavailable({ reason: "there is no such bucket" }))
        const found = page.objects.map(({ Key, Size, LastModified }) => ({
          id: Key.slice(prefix.length),
          storedBytes: Size,
          at: LastModified.getTime()
        }))
        return Effect.succeed([found, Option.fromUndefinedOr(page.nextContinuationToken)] as const)
      }
    )
  )

/** A listing of uploads. A single upload is not in an array. */
const Uploads = Schema.Struct({ ListMultipartUploadsResult: Schema.Struct({ Upload: Schema.optionalKey(Schema.Unknown) }) })

const ListedUpload = Schema.Struct({ Key: Schema.String, UploadId: Schema.String, Initiated: Schema.String })

const decode = <A>(shape: Schema.Decoder<A>, reply: unknown) => Effect.mapError(Schema.decodeUnknownEffect(shape)(reply), unavailable)

/** Unfinished uploads that began before a time; none if the service cannot list them. */
const unfinishedUploads = (request: Request, prefix: string) =>
  Effect.fnUntraced(function* (time: number): Effect.fn.Return<ReadonlyArray<Upload>, BlobUnavailable> {
    const listing = request((s3) => s3.listMultipartUploads("/", prefix, "GET", { prefix }), identity)
    const reply: unknown = yield* unless(isUnsupported, listing)
    if (reply === undefined) return []
    const { ListMultipartUploadsResult } = yield* decode(Uploads, reply)
    const listed = ListMultipartUploadsResult.Upload ?? []
    const uploads = yield* decode(Schema.Array(ListedUpload), Array.isArray(listed) ? listed : [listed])
    return uploads
      .filter(({ Initiated }) => Date.parse(Initiated) <= time)
      .map(({ Key, UploadId }) => ({ name: Key.slice(prefix.length), uploadId: UploadId }))
  })
