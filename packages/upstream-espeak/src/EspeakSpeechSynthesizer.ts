/**
 * `SpeechSynthesizer` on espeak-ng and LAME, in this process and offline. The first text starts worker threads (a third of a second, and
 * 250 MB each while they work), and the end of the layer's scope ends them.
 */
import { InvalidInput, Speech } from "@millrace/core"
import * as WorkerPool from "@millrace/upstreams/worker-pool"
import { Duration, Effect, Layer, Stream } from "effect"
import type { SpeechOrder } from "./EspeakWorker.ts"
import { SpeechReply } from "./SpeechReply.ts"
import { spokenTextOf } from "./SpokenText.ts"
import { DEFAULT_VOICE, VOICES } from "./Voices.ts"

/** The worker's file has the extension of this one: `.ts` in the repository, `.js` in a published package. */
const SCRIPT = new URL(import.meta.url.endsWith(".ts") ? "./EspeakWorker.ts" : "./EspeakWorker.js", import.meta.url)

export interface Options extends Pick<WorkerPool.Options<typeof SpeechReply.Type>, "threads" | "accountLimit" | "queueLimit"> {
  /** The longest wait of a text for its turn; 3 minutes by default. */
  readonly waitLimit?: Duration.Input
  /** The time limit of one text; a minute by default. A text that exceeds it fails, and its thread is ended. */
  readonly timeLimit?: Duration.Input
  /** A thread that is idle for this long is ended, and restarted when needed. A minute by default. */
  readonly idleLimit?: Duration.Input
  /** The longest audio, at 6 kB a second; half an hour by default. A text that takes longer is refused. */
  readonly durationLimit?: Duration.Input
}

/** Bytes. */
const PIECE = 64 * 1024

const piecesOf = function* (mp3: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < mp3.length; at += PIECE) yield mp3.subarray(at, at + PIECE)
}

const FILES: ReadonlyMap<string, string> = new Map(VOICES.map(({ id, file }) => [id, file]))

const VOICE_LIST: Speech.VoiceList = { default_voice: DEFAULT_VOICE, voices: VOICES.map(({ file, ...voice }) => voice) }

const invalid = (field: string, message: string) => new InvalidInput({ field, message })

/**
 * MP3 of 48 kbit/s, 22,050 Hz, one channel. The same text gives the same bytes. Accounts take fair turns, and a text is spoken to its end
 * before the first piece is returned. Isolated `UpstreamUnavailable` if a text waits too long, its thread crashes or hangs, or too many
 * texts wait. An interruption ends the thread; the next text gets a new one.
 */
export const layer = ({
  waitLimit = "3 minutes",
  timeLimit = "1 minute",
  idleLimit = "1 minute",
  durationLimit = "30 minutes",
  ...limits
}: Options = {}): Layer.Layer<Speech.SpeechSynthesizer> =>
  Layer.effect(
    Speech.SpeechSynthesizer,
    Effect.gen(function* () {
      const espeak = yield* WorkerPool.make<SpeechOrder, typeof SpeechReply.Type>({
        upstream: "espeak-ng",
        script: SCRIPT,
        reply: SpeechReply,
        waitLimit,
        timeLimit,
        idleLimit,
        ...limits
      })
      const longest = Duration.fromInputUnsafe(durationLimit)

      const speak = Effect.fn("EspeakSpeechSynthesizer.synthesize")(function* ({ accountId, text, voice }: Speech.SpeechRequest) {
        const file = FILES.get(voice)
        if (file === undefined) return yield* invalid("voice", `voice ${JSON.stringify(voice)} is unknown`)
        const order = { text: spokenTextOf(text), voice: file, durationLimit: Duration.toSeconds(longest) }
        const [reply] = yield* espeak.ask(accountId, [order])
        if (reply === undefined) return yield* Effect.die(new Error("One message has one reply"))
        return yield* SpeechReply.match(reply, {
          Spoken: ({ mp3 }) => Effect.succeed(mp3),
          Silent: () => Effect.fail(invalid("text", "there is nothing in the text to speak")),
          TooLong: () => Effect.fail(invalid("text", `the text takes longer than ${Duration.format(longest)} to say`))
        })
      })

      return {
        voices: Effect.succeed(VOICE_LIST),
        synthesize: (request) => Stream.unwrap(Effect.map(speak(request), (mp3) => Stream.fromIterable(piecesOf(mp3))))
      }
    })
  )
