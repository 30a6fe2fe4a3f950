/** What callers in JavaScript give by name. A mistake is told in a sentence that says what to give instead. */
import { Duration, Layer, Option } from "effect"

/** A mistake in the code of the host, which the compiler tells callers in TypeScript. */
export class Mistake extends TypeError {
  readonly code = "invalid_argument"
}

/** What a value must be: `give` ends the sentence "The option jobs of createMillrace is "four": give ...". */
export interface Rule {
  readonly give: string
  readonly holds: (value: unknown) => boolean
  /** A wrong value is not shown. */
  readonly secret?: boolean
}

export type Rules = Readonly<Record<string, Rule>>

interface Named {
  readonly [name: string]: unknown
}

export const isRecord = (value: unknown): value is Named => typeof value === "object" && value !== null && !Array.isArray(value)

/** A value in a sentence. Objects are not shown: they may hold secrets. */
export const shown = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (Array.isArray(value)) return "an array"
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "an invalid date" : value.toISOString()
  return typeof value === "function" ? "a function" : isRecord(value) ? "an object" : String(value)
}

/** Throws for the first option that there is not, or whose value its rule refuses. What is undefined was not given. */
export const assertGiven = (what: string, given: Named, rules: Rules): void => {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
    if (rule === undefined) throw new Mistake(`The option ${name} of ${what} does not exist; there are ${Object.keys(rules).join(", ")}`)
    if (rule.holds(value)) continue
    const told = rule.secret === true && typeof value === "string" ? "another text" : shown(value)
    throw new Mistake(`The option ${name} of ${what} is ${told}: give ${rule.give}`)
  }
}

export const rule = (give: string, holds: (value: unknown) => boolean): Rule => ({ give, holds })

/** Checked elsewhere. */
export const anything = rule("a value", () => true)

export const isNumber = (least: number) => (value: unknown) => Number.isFinite(value) && (value as number) >= least
export const isInt = (least: number) => (value: unknown) => Number.isSafeInteger(value) && (value as number) >= least
const isText = (value: unknown): value is string => typeof value === "string" && value !== ""

export const text = (give: string): Rule => rule(give, isText)
export const texts = (give: string): Rule => rule(give, (value) => Array.isArray(value) && value.every(isText))
export const textOrLayer = (give: string): Rule => rule(`${give}, or a layer`, (value) => isText(value) || Layer.isLayer(value))
export const flag = rule("true or false", (value) => typeof value === "boolean")
export const oneOf = (...words: ReadonlyArray<string>): Rule =>
  rule(words.map(shown).join(" or "), (value) => words.includes(value as string))

const isDuration = (value: unknown): boolean => Option.isSome(Duration.fromInput(value as Duration.Input))

/** Milliseconds, or words such as `5 seconds`. */
export const duration = rule('milliseconds, or words such as "5 seconds"', isDuration)
export const durations = rule('an array of milliseconds, or of words such as "5 seconds"', (value) =>
  Array.isArray(value) ? value.every(isDuration) : false
)

/** Options within an option: throws with the name of the inner one, and for what `lacks` says that they lack. */
export const within = (what: string, rules: Rules, lacks: (given: Named) => string | undefined = () => undefined): Rule =>
  rule(`an object with ${Object.keys(rules).join(", ")}`, (value) => {
    if (!isRecord(value)) return false
    assertGiven(what, value, rules)
    const lacking = lacks(value)
    if (lacking !== undefined) throw new Mistake(`The option ${what} of createMillrace ${lacking}`)
    return true
  })

/** What options lack of which each must be given. */
export const needing =
  (...names: ReadonlyArray<string>) =>
  (given: Named): string | undefined => {
    const missing = names.find((name) => given[name] === undefined)
    return missing === undefined ? undefined : `needs ${missing}`
  }

/** What options lack of which some do nothing unless one of others is given. */
export const useless = (given: Named, names: ReadonlyArray<string>, without: ReadonlyArray<string>): string | undefined => {
  const idle = names.find((name) => given[name] !== undefined)
  return idle === undefined || without.some((name) => given[name] !== undefined)
    ? undefined
    : `has ${idle}, but not ${without.join(" or ")}`
}
