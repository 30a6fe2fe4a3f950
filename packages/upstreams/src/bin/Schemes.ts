/** Names and prefixes of card networks. */
import creditCardType from "credit-card-type"

/** Names of networks in directories, mapped to those of `credit-card-type`. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ["amex", "american-express"],
  ["diners", "diners-club"],
  ["diners-club-international", "diners-club"],
  ["china-unionpay", "unionpay"]
])

/** A network's canonical name: `American Express` and `amex` become `american-express`. */
export const schemeNamed = (name: string): string => {
  const scheme = name.trim().toLowerCase().replaceAll(/\s+/gu, "-")
  return ALIASES.get(scheme) ?? scheme
}

/** A card network: its canonical name, and the name that people know. */
export interface Network {
  readonly scheme: string
  readonly brand: string
}

/**
 * The one network that all cards with this prefix of six to eight digits belong to, by the longest range that covers it. Undefined where
 * there is none, or when the prefix is too short to tell: 650837 is Discover's, but some of its eight-digit prefixes are Troy's.
 */
export const schemeOf = (bin: string): Network | undefined => {
  if (!/^[0-9]{6,8}$/u.test(bin)) return undefined
  const prefix = Number(bin)
  const spans = spansOf(bin.length)
  // The last span that does not begin after the prefix is at `low` or later, and before `high`
  let low = 0
  let high = spans.length
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((spans[middle]?.first ?? 0) <= prefix) low = middle
    else high = middle
  }
  return spans[low]?.network
}

/** Successive prefixes of one length, from `first` to the next span, that all belong to one network, or to none. */
interface Span {
  readonly first: number
  readonly network: Network | undefined
}

const SPANS = new Map<number, ReadonlyArray<Span>>()

/**
 * The spans of all prefixes with so many digits. A search by the library takes ten microseconds, so it runs once for each place where its
 * answer may change, and not for each lookup. That takes some ten milliseconds, at the first lookup of a length.
 */
const spansOf = (digits: number): ReadonlyArray<Span> => {
  const known = SPANS.get(digits)
  if (known !== undefined) return known
  const spans: Array<Span> = []
  for (const first of boundaries(digits)) {
    const network = searched(String(first).padStart(digits, "0"))
    // The first span begins at 0
    if (spans.length === 0 || spans.at(-1)?.network?.scheme !== network?.scheme) spans.push({ first, network })
  }
  SPANS.set(digits, spans)
  return spans
}

/** The prefixes at which the library's answer may change: where one of its ranges begins, or has ended. Ascending, from 0. */
const boundaries = (digits: number): ReadonlyArray<number> => {
  const ranges = Object.values(creditCardType.types).flatMap((type) => creditCardType.getTypeInfo(type).patterns)
  const filled = (prefix: number, digit: "0" | "9"): number => Number(String(prefix).slice(0, digits).padEnd(digits, digit))
  const found = ranges.flatMap((range) => {
    const [first = 0, last = first] = Array.isArray(range) ? range : [range]
    return [filled(first, "0"), filled(last, "9") + 1]
  })
  return [...new Set([0, ...found])].filter((prefix) => prefix < 10 ** digits).sort((a, b) => a - b)
}

/** The library's answer. Of ranges equally long, the library lists those cut out of another's before it. */
const searched = (bin: string): Network | undefined => {
  const [match, ...others] = creditCardType(bin)
  if (match === undefined || others.length > 0) return undefined
  // A single digit identifies an industry, except 4. The library reports Maestro for any prefix 6 without a longer match
  if ((match.matchStrength ?? 0) < 2 && match.type !== "visa") return undefined
  return { scheme: match.type, brand: match.niceType }
}
