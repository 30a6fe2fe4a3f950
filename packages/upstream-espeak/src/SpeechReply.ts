/** The worker thread's reply to a text. */
import { Schema } from "effect"

export const SpeechReply = Schema.TaggedUnion({
  Spoken: { mp3: Schema.Uint8Array },
  /** The text has nothing to speak. */
  Silent: {},
  /** The audio would exceed the limit. */
  TooLong: {}
})
