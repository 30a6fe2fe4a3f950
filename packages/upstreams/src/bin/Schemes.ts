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

/**
 * The one network that all cards with this prefix of six to eight digits belong to, by the longest range that covers it. Undefined where
 * there is none, or when the prefix is too short to tell: 650837 is Discover's, but some of its eight-digit prefixes are Troy's.
 * Of ranges equally long, the library lists those cut out of another's before it.
 */
export const schemeOf = (bin: string): { readonly scheme: string; readonly brand: string } | undefined => {
  const [match, ...others] = creditCardType(bin)
  if (match === undefined || others.length > 0) return undefined
  // A single digit identifies an industry, except 4. The library reports Maestro for any prefix 6 without a longer match
  if ((match.matchStrength ?? 0) < 2 && match.type !== "visa") return undefined
  return { scheme: match.type, brand: match.niceType }
}
