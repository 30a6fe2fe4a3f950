/** E-mail addresses of accounts, in one normal form, so that one address is one account. */

/** RFC 5321, 4.5.3.1: octets. */
const MAX_LOCAL = 64
const MAX_ADDRESS = 254
const MAX_LABEL = 63

// No white space, control characters, or characters that need quotes. Each pattern repeats one class, so matching is linear
const LOCAL = /^[^\s\p{C}\p{Z}@"(),:;<>[\]\\]+$/u
const LABEL = /^[\p{L}\p{M}\p{N}-]+$/u

const octets = (text: string): number => Buffer.byteLength(text)

const isLabel = (label: string): boolean =>
  octets(label) <= MAX_LABEL && LABEL.test(label) && !label.startsWith("-") && !label.endsWith("-")

/**
 * The normal form of an address: trimmed, lower case, Unicode NFC; undefined when it is no address. Says nothing on whether mail arrives
 * there. `+` tags and dots stay, because each provider treats them differently.
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
