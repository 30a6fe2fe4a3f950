/** Addresses of servers in settings, perhaps with a name and a password. */

/** The text that an encoded one stands for; undefined for a malformed one. A percent sign is encoded as `%25`. */
export const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The address, if the text begins with a scheme and a host, and its name and password can be decoded. */
export const serverUrl =
  (beginning: RegExp) =>
  (text: string): URL | undefined => {
    const url = beginning.test(text) ? URL.parse(text) : null
    return url !== null && decoded(url.username) !== undefined && decoded(url.password) !== undefined ? url : undefined
  }
