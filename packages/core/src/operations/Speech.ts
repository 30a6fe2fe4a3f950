/** Text to speech: the service, its voices, and the operation that lists them. */
import { Context, Effect, Layer, Schema, Stream } from "effect"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, UpstreamNotConfigured, type UpstreamUnavailable } from "../work/OperationError.ts"

/** The longest text and voice id, in Unicode code points. */
export const MAX_TEXT = 2_000
export const MAX_VOICE = 50

/** The media type of speech. */
export const CONTENT_TYPE = "audio/mpeg"

export const Voice = Schema.Struct({
  /** The id that a call names. */
  id: Schema.String,
  name: Schema.String,
  /** BCP 47, such as `en-US`; `mul` for a voice that speaks any language. */
  language: Schema.String,
  /** Null if unknown. */
  gender: Schema.NullOr(Schema.Literals(["female", "male"])),
  /** A category of voices, in lower case. */
  category: Schema.String
})
export type Voice = typeof Voice.Type

export const VoiceList = Schema.Struct({
  /** The id of the voice for calls that name none. */
  default_voice: Schema.String,
  voices: Schema.Array(Voice)
})
export type VoiceList = typeof VoiceList.Type

export interface SpeechRequest {
  readonly accountId: string
  /** At most `MAX_TEXT` code points. */
  readonly text: string
  /** The id of a listed voice: see {@link voiceOf}. */
  readonly voice: string
  /** The same for each attempt at the same work. For providers that accept an idempotency key. */
  readonly idempotencyKey: string
}

/**
 * `InvalidInput` with the field `text` if the text has nothing to speak, or the provider refuses it. `UpstreamUnavailable` for any other
 * failure.
 */
export type SpeechFailure = InvalidInput | UpstreamUnavailable | UpstreamNotConfigured

export class SpeechSynthesizer extends Context.Service<
  SpeechSynthesizer,
  {
    /** Fails without a provider. */
    readonly voices: Effect.Effect<VoiceList, UpstreamNotConfigured>
    /**
     * Speaks a text as MP3, in pieces. Work begins when the stream runs; an interruption ends the connection or the thread. The pieces of a
     * stream that fails must be discarded.
     */
    readonly synthesize: (request: SpeechRequest) => Stream.Stream<Uint8Array, SpeechFailure>
  }
>()("@millrace/core/operations/Speech/SpeechSynthesizer") {
  static readonly unconfigured: Layer.Layer<SpeechSynthesizer> = Layer.sync(SpeechSynthesizer, () => {
    const missing = new UpstreamNotConfigured({ upstream: "speech" })
    return { voices: Effect.fail(missing), synthesize: () => Stream.fail(missing) }
  })
}

/** Fails without a provider. */
export const configured: Effect.Effect<void, UpstreamNotConfigured, SpeechSynthesizer> = Effect.asVoid(
  SpeechSynthesizer.use(({ voices }) => voices)
)

/** The voice of an id in any case, or the default voice. `InvalidInput` for an unknown id; it names similar voices. */
export const voiceOf = Effect.fnUntraced(function* (id: string | undefined) {
  const { default_voice, voices } = yield* SpeechSynthesizer.use(({ voices }) => voices)
  const wanted = id ?? default_voice
  const lower = wanted.toLowerCase()
  const voice = voices.find(({ id }) => id === wanted) ?? voices.find(({ id }) => id.toLowerCase() === lower)
  return voice ?? (yield* new InvalidInput({ field: "voice", message: unknown(wanted, closest(wanted, voices)) }))
})

const unknown = (wanted: string, close: ReadonlyArray<Voice>): string =>
  `voice ${JSON.stringify(wanted)} is unknown; ` +
  (close.length === 0 ? "GET /audio/voices lists all" : `close to it: ${close.map(({ id }) => id).join(", ")}`)

/** The most similar voices in an error. */
const MAX_SUGGESTIONS = 5
const MAX_EDITS = 3

/**
 * The voices similar to an unknown id, most similar first: those of the same language or with a name that begins with it, then those whose
 * id is a few edits away (one, and one more for each four characters), then by the length of the id. Linear in the list and the id.
 */
export const closest = (wanted: string, voices: ReadonlyArray<Voice>): ReadonlyArray<Voice> => {
  const lower = wanted.toLowerCase()
  const limit = Math.min(MAX_EDITS, 1 + Math.floor(lower.length / 4))
  const [subtag = ""] = lower.split(/[-_]/u, 1)
  return voices
    .map((voice) => ({ voice, related: isRelated(voice, lower, subtag), edits: editsBetween(lower, voice.id.toLowerCase(), limit) }))
    .filter(({ related, edits }) => related || edits <= limit)
    .sort((a, b) => Number(b.related) - Number(a.related) || a.edits - b.edits || a.voice.id.length - b.voice.id.length)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ voice }) => voice)
}

const isRelated = ({ name, language }: Voice, lower: string, subtag: string): boolean =>
  lower !== "" && (name.toLowerCase().startsWith(lower) || language.toLowerCase().split("-", 1)[0] === subtag)

/**
 * The Levenshtein distance of two strings, or `limit + 1` if it is greater. Computes only the diagonal band of the table that `limit` edits
 * can reach (Ukkonen, 1985).
 */
export const editsBetween = (a: string, b: string, limit: number): number => {
  const far = limit + 1
  if (Math.abs(a.length - b.length) > limit) return far
  let above = Array.from({ length: b.length + 1 }, (_, j) => Math.min(j, far))
  let row = Array.from(above, () => far)
  for (let i = 1; i <= a.length; i++) {
    const first = Math.max(1, i - limit)
    const last = Math.min(b.length, i + limit)
    row[first - 1] = first === 1 ? Math.min(i, far) : far
    for (let j = first; j <= last; j++) {
      const replaced = (above[j - 1] ?? far) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row[j] = Math.min(replaced, (above[j] ?? far) + 1, (row[j - 1] ?? far) + 1, far)
    }
    if (last < b.length) row[last + 1] = far
    ;[above, row] = [row, above]
  }
  return above[b.length] ?? far
}

export const voices = Operation.make("speech.voices", {
  summary: "List the voices for text to speech",
  price: 0,
  description:
    "`language` is a BCP 47 tag, or `mul` for a voice that speaks any language. `category` selects the voices of a category, in any " +
    "case. The category of a voice with one language is the first subtag, such as `en`. The list may be empty.",
  route: {
    method: "GET",
    path: "/audio/voices",
    query: { category: Schema.optionalKey(Schema.String.check(Schema.isMaxCodePoints(MAX_VOICE))) }
  },
  success: VoiceList,
  configured,
  run: Effect.fnUntraced(function* ({ category }) {
    const { default_voice, voices } = yield* SpeechSynthesizer.use(({ voices }) => voices)
    const wanted = category?.toLowerCase()
    return { data: { default_voice, voices: voices.filter((voice) => wanted === undefined || voice.category === wanted) } }
  }),
  example: {
    input: { category: "en" },
    data: {
      default_voice: "en-us",
      voices: [
        { id: "en-gb", name: "English (Great Britain)", language: "en-GB", gender: "male", category: "en" },
        { id: "en-us", name: "English (America)", language: "en-US", gender: "male", category: "en" }
      ]
    }
  }
})
