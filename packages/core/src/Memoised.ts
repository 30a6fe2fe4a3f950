/** Caches the results of a function by its argument, without a limit: for functions with few different arguments. */
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
