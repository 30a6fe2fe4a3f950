/** Words that stand nowhere but where a test put them, and a search for them in all that is written. */

export const canary = (name: string): string => `canary${name}${crypto.randomUUID().replaceAll("-", "")}`

/** How a secret may be written: in clear, in the encodings that programs use, and as its words alone. */
const spellings = (secret: string): ReadonlyArray<Buffer> => {
  const bytes = Buffer.from(secret)
  const ways = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), bytes.toString("hex"), secret.toUpperCase()]
  // Within longer base64, a text begins at any of three places; its ends depend on its neighbours
  const base64 = [0, 1, 2].flatMap((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes])
    return [whole.toString("base64").slice(4, -4), whole.toString("base64url").slice(4, -4)]
  })
  return [...ways, ...base64].map((text) => Buffer.from(text)).concat(Buffer.from(secret, "utf16le"))
}

export const isIn = (secret: string, bytes: Buffer): boolean => spellings(secret).some((spelling) => bytes.includes(spelling))
