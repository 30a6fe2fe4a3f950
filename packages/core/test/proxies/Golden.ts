/** Recorded proxy sessions and their states: text that must be the same in every release. See `test/golden/addProxySession.ts`. */
import { ProxySession } from "@millrace/core"
import { decodeWith, type RecordedLine } from "../ledger/Golden.ts"

export const { codec } = ProxySession.ProxySession

export const decodeLog = (log: ReadonlyArray<RecordedLine>) => decodeWith(codec, log)

/** The state of the session after each of its events, as lines of JSON. */
export const replay = (log: ReadonlyArray<RecordedLine>): string => {
  let session: ProxySession.ProxySession = ProxySession.ProxySession.initial
  return decodeLog(log)
    .map(({ at, event }) => {
      session = ProxySession.ProxySession.evolve(session, event, at)
      return `${JSON.stringify(session)}\n`
    })
    .join("")
}
