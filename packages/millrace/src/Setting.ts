/** A setting: from its flag, else from its environment variable, else its default. All three are checked alike. */
import { Array, Config, Effect, type Option } from "effect"
import { CliError, Flag } from "effect/cli"

/** The values of a setting. */
export interface Kind<A> {
  /** Placeholder for the value, in the help. */
  readonly metavar: string
  readonly parse: (text: string) => A | undefined
  /** The values that `parse` accepts, in words. */
  readonly expected: string
  /** It may hold a password or a token, so a wrong value is not shown. */
  readonly secret?: boolean
}

const variableOf = (flag: string): string => `MILLRACE_${flag.toUpperCase().replaceAll("-", "_")}`

const described = (flag: string, description: string, metavar: string, variable: string, fallback?: string) =>
  Flag.String(flag).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(`${description} (${variable}${fallback === undefined ? "" : `, else ${fallback}`})`),
    Flag.withFallbackConfig(Config.String(variable))
  )

const parsed = <A>(flag: string, { expected: values, parse, secret = false }: Kind<A>, variable: string) =>
  Flag.mapEffect((text: string) => {
    const value = parse(text)
    if (value !== undefined) return Effect.succeed(value)
    const expected = `${values}, by --${flag} or ${variable}`
    return Effect.fail(new CliError.InvalidValue({ option: flag, value: secret && text !== "" ? "***" : text, expected, kind: "flag" }))
  })

/** A setting with a default. Its variable is the name of the flag in capitals after `MILLRACE_`. */
export const make = <A>(flag: string, description: string, kind: Kind<A>, fallback: string): Flag.Flag<A> => {
  const variable = variableOf(flag)
  return described(flag, description, kind.metavar, variable, fallback).pipe(Flag.withDefault(fallback), parsed(flag, kind, variable))
}

/** A setting without a default. */
export const optional = <A>(flag: string, description: string, kind: Kind<A>, variable = variableOf(flag)): Flag.Flag<Option.Option<A>> =>
  described(flag, description, kind.metavar, variable).pipe(parsed(flag, kind, variable), Flag.optional)

/** Any text that is not empty. */
export const text = (value: string): string | undefined => (value === "" ? undefined : value)

export const address: Kind<string> = { metavar: "address", parse: text, expected: "an address of this machine" }

export const file: Kind<string> = { metavar: "file", parse: text, expected: "a file" }

/** A whole number; `what` says of what. */
export const whole = (metavar: string, what: string, least: number, most: number): Kind<number> => ({
  metavar,
  parse: (text) => (/^\d{1,7}$/u.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined),
  expected: `${what} from ${least} to ${most}`
})

export const port = whole("number", "a port", 0, 65_535)

/** Where to listen. */
export interface Listening {
  readonly host: string
  readonly port: number
}

const HOST_AND_PORT = /^(?:\[(?<v6>[0-9a-f:.]+)\]|(?<name>[^\s:[\]]+)):(?<port>\d{1,5})$/iu

/** `0.0.0.0:25`, or `[::]:25`. */
export const hostAndPort: Kind<Listening> = {
  metavar: "host:port",
  parse: (text) => {
    const { name, port, v6 } = HOST_AND_PORT.exec(text)?.groups ?? {}
    const host = v6 ?? name
    return host === undefined || Number(port) > 65_535 ? undefined : { host, port: Number(port) }
  },
  expected: "an address and a port such as 127.0.0.1:2525, or 0.0.0.0:25 for every address"
}

/** One of these words. */
export const oneOf =
  <const Word extends string>(words: ReadonlyArray<Word>) =>
  (text: string): Word | undefined =>
    words.find((word) => word === text.toLowerCase())

/** At least one item, separated by commas. */
export const list =
  (isOne: (text: string) => boolean) =>
  (text: string): Array.NonEmptyReadonlyArray<string> | undefined => {
    const items = text.split(",").map((item) => item.trim())
    return items.every(isOne) && Array.isArrayNonEmpty(items) ? items : undefined
  }
