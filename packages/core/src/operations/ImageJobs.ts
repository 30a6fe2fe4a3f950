/** Jobs that generate and edit images from a prompt. */
import { Effect, Schema, Stream } from "effect"
import { Jobs } from "../jobs/Jobs.ts"
import { unreadable } from "../jobs/JobView.ts"
import { BlobStore } from "../vault/BlobStore.ts"
import { ofJob } from "../vault/Vault.ts"
import type { RunningJob } from "../work/JobOperation.ts"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, NotFound } from "../work/OperationError.ts"
import * as Image from "./Image.ts"
import { creates, EXAMPLE_JOB, operationsOf } from "./MediaJobs.ts"
import { isWebAddress } from "./WebAddress.ts"

export const imageJobs = Operation.family("image", {
  resource: "job",
  path: "/ai/images/:job",
  result: Schema.Struct({ samples: Schema.Int })
})

const { maximum, minimum } = Image.SIDE
const side = Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum, maximum })))
const prompt = Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(Image.MAX_PROMPT))

const configured = Effect.flatMap(Image.ImageGenerator, ({ configured }) => configured)

/** Fails if a translation is requested and there is no translator. */
const translatable = (translate: boolean | undefined) =>
  translate === true ? Effect.flatMap(Image.Translator, ({ configured }) => configured) : Effect.void

const inEnglish = (prompt: string, translate: boolean | undefined) =>
  translate === true ? Effect.flatMap(Image.Translator, (translator) => translator.translate(prompt)) : Effect.succeed(prompt)

const kept = (pictures: ReadonlyArray<Image.Picture>, job: RunningJob<null>) =>
  Effect.map(
    Effect.forEach(pictures, ({ bytes, contentType }) => job.store(bytes, { contentType })),
    (artifacts) => ({ data: { samples: artifacts.length }, artifacts })
  )

export const generate = Operation.job("image.generate", {
  summary: "Generate images from a prompt",
  price: 8,
  description:
    "Creates a job. Read the job for its status and download its artifact. If there are several `samples`, `?part=` selects one, " +
    "counted from 1. With `translate`, the prompt may be in any language. `Prefer: wait=20` waits up to 20 seconds for the end.",
  route: {
    method: "POST",
    path: "/ai/images",
    body: {
      prompt,
      /** Pixels; 1024 by default, as is the height. */
      width: side,
      height: side,
      translate: Schema.optionalKey(Schema.Boolean),
      /** 1 by default. */
      samples: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Image.MAX_SAMPLES })))
    }
  },
  family: imageJobs,
  ...creates("image"),
  configured,
  check: ({ translate }) => Effect.andThen(configured, translatable(translate)),
  run: Effect.fnUntraced(function* ({ height = Image.SIDE.default, prompt, samples = 1, translate, width = Image.SIDE.default }, job) {
    const generator = yield* Image.ImageGenerator
    const pictures = yield* generator.generate({
      prompt: yield* inEnglish(prompt, translate),
      width,
      height,
      samples,
      idempotencyKey: job.id
    })
    return yield* kept(pictures, job)
  }),
  example: {
    input: { prompt: "A water mill at dawn, oil on canvas", width: 1024, height: 768, samples: 1 },
    data: { id: EXAMPLE_JOB, status: "processing" }
  }
})

/** Decodes base64, with or without the prefix of a data URL. Undefined if it is malformed. */
const bytesOf = (image: string): Uint8Array | undefined => {
  const text = image.replace(/^data:image\/[a-z]+;base64,/u, "")
  return /^[A-Za-z0-9+/]+={0,2}$/u.test(text) ? Buffer.from(text, "base64") : undefined
}

/** The source of the image to edit: at most one of `image_url`, `job_id` and `image`. */
interface Source {
  readonly image_url?: string
  readonly job_id?: string
  readonly image?: string
  readonly allow_prompt_only?: boolean
}

const invalid = (field: "image" | "image_url", message: string) => Effect.fail(new InvalidInput({ field, message }))

const checkSource = Effect.fnUntraced(function* (accountId: string, { allow_prompt_only = false, image, image_url, job_id }: Source) {
  const given = [image_url, job_id, image].filter((source) => source !== undefined).length
  if (given > 1) return yield* invalid("image", "only one of image_url, job_id and image can be edited")
  if (given === 0 && !allow_prompt_only)
    return yield* invalid("image", "one of image_url, job_id and image is required, unless allow_prompt_only is true")
  if (image_url !== undefined && !isWebAddress(image_url))
    return yield* invalid("image_url", "expected an http or https address without credentials")
  if (job_id !== undefined) yield* earlier(accountId, job_id)
  if (image !== undefined) {
    const bytes = bytesOf(image)
    if (bytes === undefined) return yield* invalid("image", "expected base64, with or without data:image/png;base64, before it")
    const { inspect } = yield* Image.ImageInspector
    yield* inspect({ accountId, image: bytes })
  }
})

/** The first image of an earlier job of the same account. */
const earlier = Effect.fnUntraced(function* (accountId: string, jobId: string) {
  const jobs = yield* Jobs
  const { job } = yield* Effect.mapError(jobs.find(accountId, imageJobs, jobId), unreadable("job"))
  const [artifact] = job.status === "succeeded" ? job.artifacts : []
  return artifact ?? (yield* new NotFound({ resource: "job" }))
})

const pictureOf = Effect.fnUntraced(function* (accountId: string, { image, image_url, job_id }: Source) {
  if (image !== undefined) return bytesOf(image)
  if (image_url !== undefined) return (yield* (yield* Image.ImageDownloader).download(image_url)).bytes
  if (job_id === undefined) return undefined
  const { id } = yield* earlier(accountId, job_id)
  const blobs = yield* BlobStore
  const pieces = yield* blobs.get(ofJob(job_id, accountId), id).pipe(
    Effect.flatMap(({ bytes }) => Stream.runCollect(bytes)),
    Effect.mapError(unreadable("job", "blobs"))
  )
  return Buffer.concat(pieces)
})

export const edit = Operation.job("image.edit", {
  summary: "Edit an image with a prompt",
  price: 8,
  description:
    "The image is at an address (`image_url`), the result of an earlier job (`job_id`), or inline (`image`, base64). Without an " +
    "image, `allow_prompt_only` must be true. `strength` is the amount of change, from 0 to 1.",
  route: {
    method: "POST",
    path: "/ai/images/edit",
    body: {
      prompt,
      image_url: Schema.optionalKey(Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(2_048))),
      job_id: Schema.optionalKey(Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(100))),
      image: Schema.optionalKey(Schema.String.check(Schema.isMinLength(1))),
      translate: Schema.optionalKey(Schema.Boolean),
      allow_prompt_only: Schema.optionalKey(Schema.Boolean),
      width: side,
      height: side,
      strength: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })))
    }
  },
  family: imageJobs,
  ...creates("image"),
  configured,
  secret: ["image"],
  check: Effect.fnUntraced(function* (input, { accountId }) {
    yield* configured
    yield* translatable(input.translate)
    yield* checkSource(accountId, input)
  }),
  run: Effect.fnUntraced(function* (input, job) {
    const { height, prompt, strength, translate, width } = input
    const generator = yield* Image.ImageGenerator
    const image = yield* pictureOf(job.accountId, input)
    const pictures = yield* generator.edit({
      prompt: yield* inEnglish(prompt, translate),
      image,
      idempotencyKey: job.id,
      ...(width === undefined ? {} : { width }),
      ...(height === undefined ? {} : { height }),
      ...(strength === undefined ? {} : { strength })
    })
    return yield* kept(pictures, job)
  }),
  example: {
    input: { prompt: "The same mill under snow", job_id: EXAMPLE_JOB, strength: 0.6 },
    data: { id: "job_01JD7X3A0C8N5R2W7E9T4Y6U1K", status: "processing" }
  }
})

export const { read, cancel, download } = operationsOf("image", imageJobs, {
  summaries: { read: "Read an image job", cancel: "Cancel an image job and delete its files", download: "Download an image" },
  contentTypes: ["image/png", "image/jpeg"]
})
