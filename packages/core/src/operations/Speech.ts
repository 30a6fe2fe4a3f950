/** Speech: texts read aloud, and the voices that can. */
import { Context, Effect, Layer, Schema, Stream } from "effect"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, UpstreamNotConfigured, type UpstreamUnavailable } from "../work/OperationError.ts"

/** Unicode code points. */
export const MAX_TEXT = 2_000
export const MAX_VOICE = 50

/** Of whatever is spoken. */
export const CONTENT_TYPE = "audio/mpeg"

export const Voice = Schema.Struct({
  /** What a call names. */
  id: Schema.String,
  name: Schema.String,
  /** BCP 47, such as `en-US`; `mul` for a voice that speaks whatever language the text is in. */
  language: Schema.String,
  /** Null where nobody says. */
  gender: Schema.NullOr(Schema.Literals(["female", "male"])),
  /** One that it shares with others, in lower case. */
  category: Schema.String
})
export type Voice = typeof Voice.Type

export const VoiceList = Schema.Struct({
  /** The id of the voice that speaks where a call names none. */
  default_voice: Schema.String,
  voices: Schema.Array(Voice)
})
export type VoiceList = typeof VoiceList.Type

export interface SpeechRequest {
  readonly accountId: string
  /** At most `MAX_TEXT`. */
  readonly text: string
  /** The id of a voice, exactly as it is listed: see {@link voiceOf}. */
  readonly voice: string
  /** The same for each attempt at the same work: passed to providers that take one. */
  readonly idempotencyKey: string
}

/**
 * `InvalidInput` (`text`) where there is nothing in the text to speak, or the provider refuses it. `UpstreamUnavailable` for all else that
 * kept it from being spoken to its end.
 */
export type SpeechFailure = InvalidInput | UpstreamUnavailable | UpstreamNotConfigured

export class SpeechSynthesizer extends Context.Service<
  SpeechSynthesizer,
  {
    /** Fails where there is no provider. */
    readonly voices: Effect.Effect<VoiceList, UpstreamNotConfigured>
    /**
     * The text as MP3, in pieces. Work begins when the stream is run, and ends with it: interrupted, it ends the connection or the thread
     * that works on it. A stream that failed may have given pieces before, which are worth nothing.
     */
    readonly synthesize: (request: SpeechRequest) => Stream.Stream<Uint8Array, SpeechFailure>
  }
>()("@millrace/core/operations/Speech/SpeechSynthesizer") {
  static readonly unconfigured: Layer.Layer<SpeechSynthesizer> = Layer.sync(SpeechSynthesizer, () => {
    const missing = new UpstreamNotConfigured({ upstream: "speech" })
    return { voices: Effect.fail(missing), synthesize: () => Stream.fail(missing) }
  })
}

/** Fails where there is no provider. */
export const configured: Effect.Effect<void, UpstreamNotConfigured, SpeechSynthesizer> = Effect.asVoid(
  SpeechSynthesizer.use(({ voices }) => voices)
)

/** The voice that is called so, in any case, or the default one; `InvalidInput` names voices close to what was asked for. */
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

/** More would be a list, and there is one. */
const MAX_SUGGESTIONS = 5
const MAX_EDITS = 3

/**
 * The voices that may have been meant, likeliest first: of the same language or a name that begins so, then of an id that is a few
 * edits away, one more for each four characters; of equals, the shorter id. Linear in the length of the list and of what was asked for.
 */
export const closest = (wanted: string, voices: ReadonlyArray<Voice>): ReadonlyArray<Voice> => {
  const lower = wanted.toLowerCase()
  const limit = Math.min(MAX_EDITS, 1 + Math.floor(lower.length / 4))
  const [subtag = ""] = lower.split(/[-_]/u, 1)
  return voices
    .map((voice) => ({ voice, kin: isKin(voice, lower, subtag), edits: editsBetween(lower, voice.id.toLowerCase(), limit) }))
    .filter(({ kin, edits }) => kin || edits <= limit)
    .sort((a, b) => Number(b.kin) - Number(a.kin) || a.edits - b.edits || a.voice.id.length - b.voice.id.length)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ voice }) => voice)
}

const isKin = ({ name, language }: Voice, lower: string, subtag: string): boolean =>
  lower !== "" && (name.toLowerCase().startsWith(lower) || language.toLowerCase().split("-", 1)[0] === subtag)

/**
 * The fewest insertions, deletions and replacements that make one string of the other, or `limit + 1` where it takes more. Of the table
 * of all prefixes, only the diagonal band that few edits can reach is filled in (Ukkonen, 1985).
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
  summary: "List the voices that read texts aloud",
  description:
    "`language` is a BCP 47 tag, and `mul` where the voice speaks whatever language the text is in. With `category`, only the voices of " +
    "that category, in any case: for voices of one language, its first subtag, such as `en`. Where there are none, the list is empty.",
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
