/** Names of streams: `{category}-{id}`; the category is the text before the first hyphen. */

export type StreamName = `${string}-${string}`

/** Longest name that every store takes, in UTF-16 code units. */
export const MAX_LENGTH = 250

/** The name of one stream. A category without a hyphen and an id that is not empty are the caller's to keep: a defect otherwise. */
export const make = (category: string, id: string): StreamName => {
  if (category === "" || id === "" || category.includes("-")) throw new Error(`No stream name: ${JSON.stringify({ category, id })}`)
  const name: StreamName = `${category}-${id}`
  if (name.length > MAX_LENGTH) throw new Error(`A stream name of ${name.length} characters: at most ${MAX_LENGTH}`)
  if (!isPlain(name)) throw new Error(`No stream name: ${JSON.stringify(name)} holds what not every store can keep`)
  return name
}

// Databases keep neither NUL nor lone surrogates, and the hash chain sets its parts apart by line feeds
const isPlain = (name: string): boolean => name.isWellFormed() && !/[\0\n\r]/u.test(name)

export const isStreamName = (text: string): text is StreamName => {
  const hyphen = text.indexOf("-")
  return hyphen > 0 && hyphen < text.length - 1 && text.length <= MAX_LENGTH && isPlain(text)
}

export const category = (name: StreamName): string => name.slice(0, name.indexOf("-"))

export const id = (name: StreamName): string => name.slice(name.indexOf("-") + 1)
