/** Settings that the environment has, for commands without their flags. */
import { Config, Effect, Option } from "effect"
import { fail } from "./Failure.ts"
import type * as Setting from "./Setting.ts"

/** The value of a variable; fails with its name, and not its value, if that is malformed. */
export const set = <A>(variable: string, { expected, parse }: Pick<Setting.Kind<A>, "expected" | "parse">) =>
  Effect.flatMap(Config.String(variable).pipe(Config.option), (text) => {
    if (Option.isNone(text)) return Effect.succeed(Option.none<A>())
    const value = parse(text.value)
    return value === undefined ? fail(`${variable} must be ${expected}`) : Effect.succeed(Option.some(value))
  })

export const isSet = (variable: string) => Effect.map(Config.String(variable).pipe(Config.option), Option.isSome)
