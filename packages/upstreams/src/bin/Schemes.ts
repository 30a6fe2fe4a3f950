/** Names of card networks, and which prefixes are theirs. */
import creditCardType from "credit-card-type"

/** Names of networks in directories, by their names in `credit-card-type`, which we use. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ["amex", "american-express"],
  ["diners", "diners-club"],
  ["diners-club-international", "diners-club"],
  ["china-unionpay", "unionpay"]
])

/** A network's name as records show it: `American Express` and `amex` are `american-express`. */
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
  // One digit names an industry, not a network, but for 4; the library takes all that begin with 6 for Maestro until it knows better.
  if ((match.matchStrength ?? 0) < 2 && match.type !== "visa") return undefined
  return { scheme: match.type, brand: match.niceType }
}
