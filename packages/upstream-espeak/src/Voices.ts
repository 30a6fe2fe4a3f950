/** The voices of espeak-ng's WebAssembly build: one for each language and dialect (`voices.json`), and a female variant of each. */
import type { Speech } from "@millrace/core"
import voices from "./voices.json" with { type: "json" }

/** espeak-ng's female variant of any voice. */
const FEMALE = "f3"

/** The voice for calls that name none. */
export const DEFAULT_VOICE = "en-us"

export interface EspeakVoice extends Speech.Voice {
  /** The voice's file in espeak-ng's data, for the option `-v`. */
  readonly file: string
}

export const VOICES: ReadonlyArray<EspeakVoice> = voices.flatMap(({ id, name, language, file }): ReadonlyArray<EspeakVoice> => {
  const [category = language] = language.split("-", 1)
  return [
    { id, name, language, gender: "male", category, file },
    { id: `${id}+${FEMALE}`, name: `${name}, female`, language, gender: "female", category, file: `${file}+${FEMALE}` }
  ]
})
