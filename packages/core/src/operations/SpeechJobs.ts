/** Jobs that read texts aloud. */
import { Effect, Schema } from "effect"
import * as Operation from "../work/Operation.ts"
import { InvalidInput } from "../work/OperationError.ts"
import { creates, EXAMPLE_JOB, operationsOf } from "./MediaJobs.ts"
import * as Speech from "./Speech.ts"

/** A text needs a character that is neither blank nor control. */
const SPOKEN = /[^\p{Z}\p{C}]/u

export const speechJobs = Operation.family("speech.synthesize", {
  resource: "job",
  path: "/audio/tts/:job",
  result: Schema.Struct({ voice: Schema.String })
})

export const synthesize = Operation.job("speech.synthesize", {
  summary: "Convert a text to speech",
  price: 5,
  description:
    "Creates a job. Read the job for its status and download its artifact, an MP3. `voice` is an id from `GET /audio/voices`; the " +
    "error for an unknown id names similar voices. `Prefer: wait=20` waits up to 20 seconds for the end.",
  route: {
    method: "POST",
    path: "/audio/tts",
    body: {
      text: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(Speech.MAX_TEXT)),
      voice: Schema.optionalKey(Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(Speech.MAX_VOICE)))
    }
  },
  family: speechJobs,
  ...creates("speech"),
  configured: Speech.configured,
  check: ({ text, voice }) =>
    Effect.andThen(Speech.voiceOf(voice), () =>
      SPOKEN.test(text) ? Effect.void : new InvalidInput({ field: "text", message: "there is nothing in the text to speak" })
    ),
  timeout: "5 minutes",
  run: Effect.fnUntraced(function* ({ text, voice }, job) {
    const { id } = yield* Speech.voiceOf(voice)
    const synthesizer = yield* Speech.SpeechSynthesizer
    const sound = synthesizer.synthesize({ accountId: job.accountId, text, voice: id, idempotencyKey: job.id })
    const artifact = yield* job.store(sound, { contentType: Speech.CONTENT_TYPE })
    return { data: { voice: id }, artifacts: [artifact] }
  }),
  example: {
    input: { text: "A mill is a thousandth of a dollar.", voice: "en-us" },
    data: { id: EXAMPLE_JOB, status: "processing" }
  }
})

export const { read, cancel, download } = operationsOf("speech", speechJobs, {
  summaries: {
    read: "Read a text-to-speech job",
    cancel: "Cancel a text-to-speech job and delete its files",
    download: "Download the audio file of a text-to-speech job"
  },
  contentTypes: [Speech.CONTENT_TYPE]
})
