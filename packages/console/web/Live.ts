/**
 * What happens to the account while the page is open. Each event is only a hint: whoever shows something reads it again. `EventSource` cannot
 * send a key, so the stream is read by `fetch`.
 */
import { useEffect, useRef } from "preact/hooks"
import { eventParser } from "./EventLines.ts"
import { currentAccess, onAccess, proof } from "./Requests.ts"

export const EVENTS = "/api/v1/account/events"

/** What changed, as the server says it. Amounts in credits. */
export interface Changed {
  readonly balance: number
  readonly held: number
  readonly debt: number
  /** Whether anything happened to the account's credits or calls. */
  readonly account: boolean
  readonly jobs: ReadonlyArray<string>
  readonly inboxes: ReadonlyArray<string>
}

/** What changed, for whoever shows something. */
export interface Change extends Changed {
  /** Whether the stream began just now: anything may have happened before it. */
  readonly isFirst: boolean
}

type Listener = (change: Change) => void

const listeners = new Set<Listener>()

/** Calls `listener` with every change, while the component is shown. */
export const useChanges = (listener: Listener): void => {
  const current = useRef(listener)
  current.current = listener
  useEffect(() => {
    const call: Listener = (change) => current.current(change)
    listeners.add(call)
    return () => void listeners.delete(call)
  }, [])
}

export type LiveState = "connecting" | "live" | "off"

/** Pauses between attempts, milliseconds: the last one repeats. */
const PAUSES = [500, 1_000, 2_000, 5_000, 15_000]

const pause = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds)
    signal.addEventListener("abort", () => {
      clearTimeout(timer)
      resolve()
    })
  })

/**
 * Follows the account until `signal` aborts, or nobody is signed in; again from the start when the tool is signed in otherwise. `report` says
 * how it goes.
 */
export const follow = async (report: (state: LiveState) => void, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted && currentAccess().by !== "nobody") {
    const otherwise = new AbortController()
    const forget = onAccess(() => otherwise.abort())
    await followAs(report, AbortSignal.any([signal, otherwise.signal]))
    forget()
  }
}

/** Follows the account as the tool is signed in now. */
const followAs = async (report: (state: LiveState) => void, signal: AbortSignal): Promise<void> => {
  for (let attempt = 0; !signal.aborted; attempt++) {
    report("connecting")
    const came = await readStream(report, signal).catch(() => false)
    if (came) attempt = 0
    if (!signal.aborted) await pause(PAUSES[Math.min(attempt, PAUSES.length - 1)] ?? 0, signal)
  }
}

/** Reads one stream to its end. Whether it began. */
const readStream = async (report: (state: LiveState) => void, signal: AbortSignal): Promise<boolean> => {
  const response = await fetch(EVENTS, { headers: { Accept: "text/event-stream", ...proof("GET") }, signal })
  if (!response.ok || response.body === null) return false
  report("live")
  const parse = eventParser()
  let isFirst = true
  const text = response.body.pipeThrough(new TextDecoderStream())
  for await (const piece of text) {
    for (const { data, name } of parse(piece)) {
      if (name !== "changed") continue
      const change = { ...(JSON.parse(data) as Changed), isFirst }
      isFirst = false
      for (const listener of [...listeners]) listener(change)
    }
  }
  return true
}
