/** The setting of the operator view: the key that opens it. Without a key, it is not there. */
import { OperatorRoutes } from "@millrace/http"
import { Config, Effect, Option, Redacted } from "effect"
import { type CommandFailed, fail } from "./Failure.ts"
import * as SecretFile from "./SecretFile.ts"
import * as Setting from "./Setting.ts"

const VARIABLE = "MILLRACE_OPERATOR_KEY"
const FLAG = "operator-key-file"

/** It goes into a header, so it has visible characters of ASCII. */
const FORMAT = new RegExp(`^[\\x21-\\x7e]{${OperatorRoutes.SHORTEST_KEY},}$`, "u")

/** What a key must be, in words. */
export const EXPECTED = `at least ${OperatorRoutes.SHORTEST_KEY} letters, digits and signs, without spaces`

export const isKey = (text: string): boolean => FORMAT.test(text)

export const flags = {
  operatorKeyFile: Setting.optional(
    FLAG,
    `File with the key that opens the operator view, of at least ${OperatorRoutes.SHORTEST_KEY} characters, which only its owner may read. ${VARIABLE} is the key itself. No operator view when both are left out`,
    Setting.file
  )
}

export interface Settings {
  readonly operatorKeyFile: Option.Option<string>
}

/** The key of the environment or of the file; none where the operator view is off. */
export const of = ({ operatorKeyFile }: Settings): Effect.Effect<Option.Option<Redacted.Redacted>, CommandFailed | Config.ConfigError> =>
  Effect.gen(function* () {
    const given = yield* Config.Redacted(VARIABLE).pipe(Config.option)
    if (Option.isSome(given) && Option.isSome(operatorKeyFile)) return yield* fail(`--${FLAG} and ${VARIABLE} are both set: leave one out`)
    const key = Option.isSome(operatorKeyFile) ? Option.some(yield* SecretFile.read(operatorKeyFile.value, `the file of --${FLAG}`)) : given
    if (Option.isSome(key) && !isKey(Redacted.value(key.value)))
      return yield* fail(`the operator's key, by --${FLAG} or ${VARIABLE}, must have ${EXPECTED}`)
    return key
  })
