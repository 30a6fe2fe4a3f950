/** The worker thread of espeak-ng and LAME: receives a `SpeechOrder`, posts a `SpeechReply`. A failure ends the thread. */
import { parentPort } from "node:worker_threads"
import { createMp3Encoder } from "wasm-media-encoders"
import { SAMPLE_RATE, speak } from "./Engine.ts"
import type { SpeechReply } from "./SpeechReply.ts"

export interface SpeechOrder {
  readonly text: string
  /** The voice's file in espeak-ng's data. */
  readonly voice: string
  /** Seconds. */
  readonly durationLimit: number
}

/** A constant bit rate in kilobits a second, so that a player knows the duration from the size. Enough for speech. */
const BIT_RATE = 48

const encoder = await createMp3Encoder()

const answer = async ({ text, voice, durationLimit }: SpeechOrder): Promise<typeof SpeechReply.Type> => {
  encoder.configure({ channels: 1, sampleRate: SAMPLE_RATE, outputSampleRate: SAMPLE_RATE, bitrate: BIT_RATE })
  const pieces: Array<Uint8Array> = []
  let sounded = false
  // Copied, because the encoder reuses its memory
  const keep = (piece: Uint8Array) => pieces.push(piece.slice())
  const whole = await speak({
    text,
    voice,
    sampleLimit: durationLimit * SAMPLE_RATE,
    onSamples: (samples) => {
      sounded ||= samples.some((sample) => sample !== 0)
      keep(encoder.encode([samples]))
    }
  })
  if (!whole) return { _tag: "TooLong" }
  if (!sounded) return { _tag: "Silent" }
  keep(encoder.finalize())
  return { _tag: "Spoken", mp3: new Uint8Array(Buffer.concat(pieces)) }
}

parentPort?.on("message", async (order: SpeechOrder) => parentPort?.postMessage(await answer(order)))
parentPort?.postMessage("ready")
