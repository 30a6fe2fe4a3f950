/** The voices of espeak-ng's WebAssembly build: one for each language and dialect in it (`voices.json`), and a female one made of each. */
import type { Speech } from "@millrace/core"
import voices from "./voices.json" with { type: "json" }

/** A variant of espeak-ng's that makes any voice female. */
const FEMALE = "f3"

/** Where a call names none. */
export const DEFAULT_VOICE = "en-us"

export interface EspeakVoice extends Speech.Voice {
  /** The file in espeak-ng's data that makes the voice, as `-v` takes it. */
  readonly file: string
}

export const VOICES: ReadonlyArray<EspeakVoice> = voices.flatMap(({ id, name, language, file }): ReadonlyArray<EspeakVoice> => {
  const [category = language] = language.split("-", 1)
  return [
    { id, name, language, gender: "male", category, file },
    { id: `${id}+${FEMALE}`, name: `${name}, female`, language, gender: "female", category, file: `${file}+${FEMALE}` }
  ]
})
