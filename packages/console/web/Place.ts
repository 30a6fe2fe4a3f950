/** Where the tool is: the part of the address after `#`, so that the server has one page and every place can be kept as a bookmark. */
import { useExternal } from "./External.ts"

export interface Place {
  /** Such as `try`. */
  readonly page: string
  /** What follows the page, such as the key of an operation; empty for none. */
  readonly rest: string
}

export const hrefOf = (page: string, rest = ""): string => `#/${page}${rest === "" ? "" : `/${encodeURIComponent(rest)}`}`

const placeOf = (hash: string): Place => {
  const [page = "", rest = ""] = hash.replace(/^#\/?/u, "").split("/")
  try {
    return { page, rest: decodeURIComponent(rest) }
  } catch {
    return { page, rest: "" }
  }
}

export const go = (page: string, rest = ""): void => {
  location.hash = hrefOf(page, rest)
}

const currentHash = (): string => location.hash

const onHash = (changed: () => void): (() => void) => {
  addEventListener("hashchange", changed)
  return () => removeEventListener("hashchange", changed)
}

export const usePlace = (): Place => placeOf(useExternal(currentHash, onHash))
