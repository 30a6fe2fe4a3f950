/** How a page reads data, and waits for it. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { type Refused, read, refusedBy } from "./Requests.ts"

/** Data that is on its way, is there, or was refused. The last data stays while newer data is on its way. */
export interface Loaded<Data> {
  readonly data: Data | undefined
  readonly refused: Refused | undefined
  /** Reads it again. */
  readonly again: () => void
}

/** Reads data from a path. */
export type Reader = <Data>(path: string, signal?: AbortSignal) => Promise<Data>

/** Reads data from a path, and again when the path changes. Undefined reads nothing. `reader`: always the same. */
export const useData = <Data>(path: string | undefined, reader: Reader = read): Loaded<Data> => {
  const [state, setState] = useState<{ readonly path: string | undefined; readonly data?: Data; readonly refused?: Refused }>({ path })
  const running = useRef<AbortController>(undefined)
  const again = useCallback(() => {
    running.current?.abort()
    if (path === undefined) return
    const controller = new AbortController()
    running.current = controller
    reader<Data>(path, controller.signal).then(
      (data) => !controller.signal.aborted && setState({ path, data }),
      (error: unknown) => {
        if (controller.signal.aborted) return
        const refused = refusedBy(error)
        setState((before) => (before.path === path ? { ...before, refused } : { path, refused }))
      }
    )
  }, [path, reader])
  useEffect(() => {
    again()
    return () => running.current?.abort()
  }, [again])
  const isCurrent = state.path === path
  return { data: isCurrent ? state.data : undefined, refused: isCurrent ? state.refused : undefined, again }
}
