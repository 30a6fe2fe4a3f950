/** A setting: from its flag, else from its environment variable, else its default. All three are checked alike. */
import { Array, Config, Option } from "effect"
import { Flag } from "effect/cli"

interface Setting<A> {
  readonly flag: string
  readonly variable: string
  readonly description: string
  /** Placeholder for the value, in the help. */
  readonly metavar: string
  /** The default; none when left out. */
  readonly fallback?: string
  readonly parse: (text: string) => A | undefined
  /** What `parse` accepts, in words. */
  readonly expected: string
}

const described = <A>({ flag, variable, description, metavar, fallback }: Setting<A>) =>
  Flag.String(flag).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(`${description} (${variable}${fallback === undefined ? "" : `, else ${fallback}`})`),
    Flag.withFallbackConfig(Config.String(variable))
  )

const parsed = <A>({ flag, variable, parse, expected }: Setting<A>) =>
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
