/** Remembers for ever what a function returned for each text. For functions of few different texts. */
export const memoised = <V extends {}>(make: (text: string) => V): ((text: string) => V) => {
  const made = new Map<string, V>()
  return (text) => {
    const known = made.get(text)
    if (known !== undefined) return known
    const value = make(text)
    made.set(text, value)
    return value
  }
}
