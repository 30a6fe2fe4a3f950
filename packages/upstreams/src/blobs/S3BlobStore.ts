/**
 * Blobs as objects of one bucket of an S3-compatible service, named after their hash. What fits into one part is put at once, under its
 * name. What is longer goes up in parts under a name of its own, is copied by the service to the name that is known only then, and
 * removed: so under its name it is there whole or not at all, and what a crash leaves is swept later.
 */
import { BlobStore, RandomBytes, type Vault } from "@millrace/core"
import { type Duration, Effect, Layer, Option, Redacted, Schema, Stream } from "effect"
import { S3Error, S3mini, S3ServiceError, type UploadPart } from "s3mini"

const { BlobNotFound, BlobUnavailable, isId } = BlobStore
type BlobUnavailable = BlobStore.BlobUnavailable

const TEMPORARY = ".part"

/** What a service copies at once, and so the most that a blob may have as it is stored. */
const MAX_COPY = 5 * 1024 ** 3

/** Read at first: all of a small blob, or where a large one begins. */
const FIRST_READ = 128 * 1024

/** Read ahead at most, where one part is read after another. */
const MAX_READ = 4 * 1024 * 1024

/** As a service lists them: one alone is no list. */
const Uploads = Schema.Struct({
  ListMultipartUploadsResult: Schema.Struct({
    Upload: Schema.optionalKey(Schema.Unknown)
  })
})

const Upload = Schema.Struct({ Key: Schema.String, UploadId: Schema.String, Initiated: Schema.String })

export interface Options {
  /** Of the bucket, such as `https://s3.eu-central-1.amazonaws.com/my-bucket`. */
  readonly bucketUrl: URL
  /** `auto` unless told, which AWS itself does not take. */
  readonly region?: string
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
  /** Before each name, such as `blobs/`; nothing unless told. */
  readonly prefix?: string
  /** Bytes of a part, 5 MiB at least; 8 MiB unless told. Each put and each read holds about one in memory. */
  readonly partSize?: number
  /** For each request, of which a large blob takes many; a minute unless told. */
  readonly timeLimit?: Duration.Input
}

const reasonOf = (cause: unknown): string => {
  if (cause instanceof S3Error) return cause.message
  if (!(cause instanceof Error)) return "no cause given"
  return cause.cause instanceof Error ? reasonOf(cause.cause) : cause.message
}

const unavailable = (cause: unknown) => new BlobUnavailable({ reason: reasonOf(cause) })

/** No such key; a bucket that is missing is a failure, not a blob that is not there. */
const isMissing = (cause: unknown): boolean =>
  cause instanceof S3ServiceError && cause.status === 404 && cause.serviceCode !== "NoSuchBucket" && !cause.body?.includes("NoSuchBucket")

/** The service does not know how to list uploads: it is left to its own rules to end them. */
const isUnsupported = (cause: unknown): boolean => cause instanceof S3ServiceError && [400, 405, 501].includes(cause.status)

/** From one byte to before another, and how many there are in all. */
interface Block {
  readonly start: number
  readonly bytes: Uint8Array
  readonly total: number
}

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

/** What was cut off before that range, or is empty, is there, though it is no blob. */
const nothing = (cause: unknown): Block => {
  if (cause instanceof S3ServiceError && cause.status === 416) return { start: 0, bytes: new Uint8Array(), total: 0 }
  throw cause
}

const shelf = (options: Options, random: RandomBytes): BlobStore.Shelf => {
  const { bucketUrl, region = "auto", accessKeyId, secretAccessKey, prefix = "", timeLimit = "1 minute" } = options
  const partSize = options.partSize ?? 8 * 1024 * 1024
  const keyOf = (id: string) => prefix + id

  /** Interrupted, a request ends its connection; `catching` says what its failure means. */
  const requestOr = <A, E>(run: (s3: S3mini) => Promise<A>, catching: (cause: unknown) => E): Effect.Effect<A, E | BlobUnavailable> =>
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
      catch: catching
    }).pipe(
      Effect.timeoutOrElse({
        duration: timeLimit,
        orElse: () => Effect.fail(new BlobUnavailable({ reason: "a request exceeds the time limit" }))
      })
    )
  const request = <A>(run: (s3: S3mini) => Promise<A>) => requestOr(run, unavailable)

  const removeKey = (key: string) =>
    requestOr(
      (s3) => s3.deleteObject(key),
      (cause) => cause
    ).pipe(
      Effect.asVoid,
      Effect.catch((cause) => (isMissing(cause) ? Effect.void : Effect.fail(cause instanceof BlobUnavailable ? cause : unavailable(cause))))
    )

  const write: BlobStore.Shelf["write"] = (fill) =>
    Effect.scoped(
      Effect.gen(function* () {
        const temporary = keyOf(Buffer.from(random(16)).toString("hex") + TEMPORARY)
        const parts: Array<UploadPart> = []
        let uploadId: string | undefined
        let isThere = false
        let part = Buffer.alloc(0)
        let filled = 0
        let stored = 0

        yield* Effect.addFinalizer(() =>
          Effect.ignore(
            isThere
              ? removeKey(temporary)
              : uploadId === undefined
                ? Effect.void
                : request((s3) => s3.abortMultipartUpload(temporary, uploadId ?? ""))
          )
        )

        const upload = Effect.fnUntraced(function* (bytes: Uint8Array) {
          const id = uploadId ?? (yield* request((s3) => s3.getMultipartUploadId(temporary)))
          uploadId = id
          parts.push(yield* request((s3) => s3.uploadPart(temporary, id, bytes, parts.length + 1)))
        })

        const append = Effect.fnUntraced(function* (bytes: Uint8Array) {
          stored += bytes.length
          if (stored > MAX_COPY) return yield* new BlobUnavailable({ reason: "a blob has more than 5 GiB" })
          for (let from = 0; from < bytes.length; ) {
            // Only now is it sure that this is not the last
            if (filled === partSize) {
              yield* upload(part)
              filled = 0
            }
            if (filled === part.length) part = grown(part, filled + bytes.length - from, partSize)
            const taken = bytes.subarray(from, from + part.length - filled)
            part.set(taken, filled)
            from += taken.length
            filled += taken.length
          }
        })

        const blob = yield* fill(append)
        const rest = part.subarray(0, filled)
        if (uploadId === undefined) {
          yield* request((s3) => s3.putObject(keyOf(blob.id), rest))
          return blob
        }
        yield* upload(rest)
        const { etag } = yield* request((s3) => s3.completeMultipartUpload(temporary, uploadId ?? "", parts))
        // It may say so late, in a reply that began as a success
        if (typeof etag !== "string") return yield* new BlobUnavailable({ reason: "the parts were not put together" })
        isThere = true
        yield* request((s3) => s3.copyObject(temporary, keyOf(blob.id), { additionalHeaders: copySource(s3.bucketName, temporary) }))
        return blob
      })
    )

  const block = (id: string, start: number, length: number) =>
    requestOr(
      (s3) => s3.getObjectRaw(keyOf(id), false, start, start + length).then((reply) => blockOf(reply, start, length), nothing),
      (cause) => (isMissing(cause) ? new BlobNotFound({ id }) : unavailable(cause))
    )

  /** One request for what is small; for what is long, requests that grow as long as one part is read after another. */
  const read: BlobStore.Shelf["read"] = (id) =>
    Effect.map(block(id, 0, FIRST_READ), (first) => {
      const end = ({ start, bytes }: Block) => start + bytes.length
      let held = first
      let ahead = 0
      const source: BlobStore.Source = {
        storedBytes: first.total,
        read: Effect.fnUntraced(function* (position, length) {
          const to = Math.min(position + length, first.total)
          if (to <= position) return new Uint8Array()
          if (position < held.start || to > end(held)) {
            ahead = position >= held.start && position <= end(held) ? Math.min(MAX_READ, Math.max(2 * ahead, FIRST_READ)) : 0
            const wanted = Math.min(Math.max(length, ahead), first.total - position)
            held = yield* Effect.catchTag(block(id, position, wanted), "BlobNotFound", () =>
              Effect.fail(new BlobUnavailable({ reason: "a blob was removed while it was read" }))
            )
          }
          return held.bytes.subarray(position - held.start, to - held.start)
        })
      }
      return source
    })

  const entries = (isMine: (name: string) => boolean): Stream.Stream<BlobStore.StoredBlob, BlobUnavailable> =>
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
          return Effect.succeed([found.filter(({ id }) => isMine(id)), Option.fromUndefinedOr(page.nextContinuationToken)] as const)
        }
      )
    )

  /** Those that nobody put together before that time. */
  const unfinished = Effect.fnUntraced(function* (time: number) {
    const reply: unknown = yield* requestOr(
      (s3) => s3.listMultipartUploads("/", prefix, "GET", { prefix }),
      (cause) => cause
    ).pipe(
      Effect.catch((cause) =>
        isUnsupported(cause) ? Effect.undefined : Effect.fail(cause instanceof BlobUnavailable ? cause : unavailable(cause))
      )
    )
    if (reply === undefined) return []
    const { ListMultipartUploadsResult } = yield* Effect.mapError(Schema.decodeUnknownEffect(Uploads)(reply), unavailable)
    const listed = ListMultipartUploadsResult.Upload ?? []
    const uploads = yield* Effect.mapError(
      Schema.decodeUnknownEffect(Schema.Array(Upload))(Array.isArray(listed) ? listed : [listed]),
      unavailable
    )
    return uploads.filter(({ Key, Initiated }) => isTemporary(Key.slice(prefix.length)) && Date.parse(Initiated) <= time)
  })

  const tidy: BlobStore.Shelf["tidy"] = Effect.fnUntraced(function* (time) {
    let removed = 0
    yield* Stream.runForEach(
      Stream.filter(entries(isTemporary), ({ at }) => at <= time),
      ({ id }) => Effect.map(removeKey(keyOf(id)), () => void removed++)
    )
    for (const { Key, UploadId } of yield* unfinished(time)) {
      yield* request((s3) => s3.abortMultipartUpload(Key, UploadId))
      removed++
    }
    return removed
  })

  return { write, read, remove: (id) => removeKey(keyOf(id)), list: entries(isId), tidy }
}

/** With its slashes as they are: not all services take them escaped, as `s3mini` has them. */
const copySource = (bucket: string, key: string) => ({
  "x-amz-copy-source": `/${bucket}/${key.split("/").map(encodeURIComponent).join("/")}`
})

const isTemporary = (name: string): boolean => name.endsWith(TEMPORARY) && !name.includes("/")

/** Room for so many bytes, and for twice what it was; for a part at most. */
const grown = (part: Buffer<ArrayBuffer>, least: number, partSize: number): Buffer<ArrayBuffer> => {
  const larger = Buffer.alloc(Math.min(partSize, Math.max(least, 2 * part.length)))
  larger.set(part)
  return larger
}

/**
 * Keeps blobs in a bucket that is there already. Versions must be off, or a rule of the bucket's remove old ones: else what was removed
 * stays, though sealed. A rule should also end unfinished uploads after some days, where the service cannot list them.
 */
export const layer = (options: Options): Layer.Layer<BlobStore.BlobStore, never, Vault.Vault> =>
  Layer.effect(
    BlobStore.BlobStore,
    Effect.flatMap(RandomBytes, (random) => BlobStore.make(shelf(options, random)))
  )
