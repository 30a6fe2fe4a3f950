/** A setting: from its flag, else from its environment variable, else its default. All three are checked alike. */
import { Array, Config, Option } from "effect"
import { Flag } from "effect/cli"

/** What values a setting takes. */
interface Kind<A> {
  /** Placeholder for the value, in the help. */
  readonly metavar: string
  readonly parse: (text: string) => A | undefined
  /** What `parse` accepts, in words. */
  readonly expected: string
}

interface Setting<A> extends Kind<A> {
  readonly flag: string
  /** The name of the flag in capitals after `MILLRACE_`, by default. */
  readonly variable?: string
  readonly description: string
  /** The default; none when left out. */
  readonly fallback?: string
}

const variableOf = (flag: string): string => `MILLRACE_${flag.toUpperCase().replaceAll("-", "_")}`

const described = <A>({ flag, variable = variableOf(flag), description, metavar, fallback }: Setting<A>) =>
  Flag.String(flag).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(`${description} (${variable}${fallback === undefined ? "" : `, else ${fallback}`})`),
    Flag.withFallbackConfig(Config.String(variable))
  )

const parsed = <A>({ flag, variable = variableOf(flag), parse, expected }: Setting<A>) =>
  Flag.filterMap(
    (text: string) => Option.fromUndefinedOr(parse(text)),
    () => `${expected}, by --${flag} or ${variable}`
  )

/** A setting with a default. */
export const make = <A>(setting: Setting<A> & { readonly fallback: string }): Flag.Flag<A> =>
  described(setting).pipe(Flag.withDefault(setting.fallback), parsed(setting))

/** A setting without a default. */
export const optional = <A>(setting: Setting<A>): Flag.Flag<Option.Option<A>> => described(setting).pipe(parsed(setting), Flag.optional)

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
