/** The state of a store on KurrentDB, which keeps only the log: `--state`, else `MILLRACE_STATE`, for every command. */
import { resolve } from "node:path"
import { Effect, Option } from "effect"
import { GlobalFlag } from "effect/cli"
import { fail } from "./Failure.ts"
import * as Setting from "./Setting.ts"
import * as SettingNames from "./SettingNames.ts"

/** The text as given. It is parsed only for a store that needs it. */
export const State = GlobalFlag.Setting("state")({
  flag: Setting.optional(
    "state",
    "Where keys, replies and leases are kept, for a log on KurrentDB: postgres://USER@HOST/DATABASE, or sqlite:PATH for one host",
    { metavar: "url", parse: (text) => text, expected: "a state", secret: true }
  )
})

/** The service that commands with a store need. */
export type Given = Effect.Services<typeof State>

const given = Effect.map(State, (state) => Option.getOrElse(state, () => ""))

/** A database that several hosts share, or the file of a single host, by its absolute path. */
export type StateUrl = { readonly _tag: "Postgres"; readonly url: string } | { readonly _tag: "Sqlite"; readonly filename: string }

const KINDS = "postgres://USER@HOST/DATABASE, or sqlite:PATH while there is one host"
const SQLITE = /^sqlite:(?:\/\/(?=\/))?(?!\/\/)(?<path>[^:].*)$/u

/** The state of a store that needs one. */
export const needed = Effect.gen(function* () {
  const url = yield* given
  const { state } = yield* SettingNames.Current
  if (url === "") {
    return yield* fail(`a log on KurrentDB needs a place for what must be deletable: ${state}, ${KINDS}`)
  }
  if (/^postgres(?:ql)?:\/\//u.test(url)) return { _tag: "Postgres", url } satisfies StateUrl
  const path = SQLITE.exec(url)?.groups?.["path"]
  // The message does not repeat the address, which may contain a password
  return path === undefined
    ? yield* fail(`unknown kind of state, by ${state}: ${KINDS}`)
    : ({ _tag: "Sqlite", filename: resolve(path) } satisfies StateUrl)
})

/** Fails where a state is given for a store that keeps its own: it would be ignored silently. */
export const refused = Effect.gen(function* () {
  const { state } = yield* SettingNames.Current
  if ((yield* given) !== "") yield* fail(`${state} is for a log on KurrentDB: this store keeps its state itself`)
})
