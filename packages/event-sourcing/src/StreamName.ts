/** Names of streams: `{category}-{id}`; the category is the text before the first hyphen. */

export type StreamName = `${string}-${string}`

/** The longest name that every store takes, in UTF-16 code units. */
export const MAX_LENGTH = 250

/** The name of a stream. Throws if the category contains a hyphen, a part is empty, or the name cannot be stored everywhere. */
export const make = (category: string, id: string): StreamName => {
  if (category === "" || id === "" || category.includes("-")) throw new Error(`Not a stream name: ${JSON.stringify({ category, id })}`)
  const name: StreamName = `${category}-${id}`
  if (name.length > MAX_LENGTH) throw new Error(`Not a stream name: it has ${name.length} characters, at most ${MAX_LENGTH} are allowed`)
  if (!isPlain(name)) throw new Error(`Not a stream name: ${JSON.stringify(name)} holds characters that not every store can keep`)
  return name
}

// Databases cannot store NUL or lone surrogates, and the hash chain separates its parts by line feeds
const isPlain = (name: string): boolean => name.isWellFormed() && !/[\0\n\r]/u.test(name)

export const isStreamName = (text: string): text is StreamName => {
  const hyphen = text.indexOf("-")
  return hyphen > 0 && hyphen < text.length - 1 && text.length <= MAX_LENGTH && isPlain(text)
}

export const category = (name: StreamName): string => name.slice(0, name.indexOf("-"))

/** Whether a stream is of the category. Unlike {@link category}, it makes no text for each stream. */
export const isOf = (category: string): ((name: StreamName) => boolean) => {
  const prefix = `${category}-`
  return (name) => name.startsWith(prefix)
}

export const id = (name: StreamName): string => name.slice(name.indexOf("-") + 1)
