/** What the worker thread has to say of a text. */
import { Schema } from "effect"

export const SpeechReply = Schema.TaggedUnion({
  Spoken: { mp3: Schema.Uint8Array },
  /** There was nothing in it to speak. */
  Silent: {},
  /** It takes longer than the limit to say. */
  TooLong: {}
})
