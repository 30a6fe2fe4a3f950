/** How the operator view reads the server: with the operator's key, which is kept in the memory of this page only. A reload forgets it. */
import { useEffect } from "preact/hooks"
import { type Loaded, useData } from "../Data.ts"
import { useExternal } from "../External.ts"
import { dataOf, transfer } from "../Requests.ts"

/** The name of the page in the address. */
export const OPERATOR = "operator"

const PLACE = "/api/v1/operator"

let key: string | undefined
const listeners = new Set<() => void>()

/** Keeps a key, or forgets it, and tells those who listen. */
export const keep = (next: string | undefined): void => {
  key = next
  for (const listener of listeners) listener()
}

/** Whether this page has a key that the server took. */
export const useAdmitted = (): boolean => useExternal(hasKey, onKey)

const hasKey = (): boolean => key !== undefined

const onKey = (changed: () => void): (() => void) => {
  listeners.add(changed)
  return () => void listeners.delete(changed)
}

const readWith = async <Data>(own: string | undefined, path: string, signal?: AbortSignal): Promise<Data> => {
  const headers = { Authorization: `Bearer ${own ?? ""}` }
  // The session of an account takes no part
  const answer = await transfer({ method: "GET", path: PLACE + path, headers, ...(signal === undefined ? {} : { signal }) }, "omit")
  return dataOf<Data>(answer)
}

/** Reads data below the place of operators. A key that is refused is forgotten. */
export const readAsOperator = async <Data>(path: string, signal?: AbortSignal): Promise<Data> => {
  const own = key
  try {
    return await readWith<Data>(own, path, signal)
  } catch (error) {
    // The answer to a key that was given up meanwhile says nothing of the key of now
    if ((error as { status?: number }).status === 401 && own === key) keep(undefined)
    throw error
  }
}

/** Tries a key, and keeps it if the server takes it. */
export const tryKey = async (own: string): Promise<void> => {
  await readWith(own, "")
  keep(own)
}

/** How often what is shown is read again, milliseconds. */
const EVERY = 10_000

/** Reads data below the place of operators, and again every ten seconds. */
export const useOperatorData = <Data>(path: string): Loaded<Data> => {
  const loaded = useData<Data>(path, readAsOperator)
  const { again } = loaded
  useEffect(() => {
    const timer = setInterval(again, EVERY)
    return () => clearInterval(timer)
  }, [again])
  return loaded
}
