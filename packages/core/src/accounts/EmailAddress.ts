/** E-mail addresses, as far as an account needs them: one form for each, so that one address is one account. */

/** RFC 5321, 4.5.3.1: octets. */
const MAX_LOCAL = 64
const MAX_ADDRESS = 254
const MAX_LABEL = 63

// Neither white space nor control characters, nor what needs quotes. Each is one class repeated, so matching is linear
const LOCAL = /^[^\s\p{C}\p{Z}@"(),:;<>[\]\\]+$/u
const LABEL = /^[\p{L}\p{M}\p{N}-]+$/u

const octets = (text: string): number => Buffer.byteLength(text)

const isLabel = (label: string): boolean =>
  octets(label) <= MAX_LABEL && LABEL.test(label) && !label.startsWith("-") && !label.endsWith("-")

/**
 * Trimmed, lower case, in Unicode's composed form; undefined when it is no address. Whether mail arrives there is another question:
 * `+` tags and dots are the provider's own business, and stay.
 */
export const normalise = (text: string): string | undefined => {
  if (text.length > 2 * MAX_ADDRESS) return undefined
  const address = text.trim().normalize("NFC").toLowerCase().normalize("NFC")
  const at = address.lastIndexOf("@")
  const local = address.slice(0, Math.max(0, at))
  const labels = address.slice(at + 1).split(".")
  const isAddress =
    octets(address) <= MAX_ADDRESS &&
    octets(local) <= MAX_LOCAL &&
    LOCAL.test(local) &&
    !local.split(".").includes("") &&
    labels.length >= 2 &&
    labels.every(isLabel)
  return isAddress ? address : undefined
}
