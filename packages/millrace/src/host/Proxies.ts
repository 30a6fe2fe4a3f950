/** Proxy sessions as promises, for an administrator. The command line lists the same by the same function. */
import type { Millrace, ProxySessions } from "@millrace/core"
import type { EventStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { resolve } from "../administration/Accounts.ts"
import * as Acts from "../administration/ProxySessions.ts"
import { metadata, type Recorded } from "./Administration.ts"
import { SESSIONS } from "./ArgumentRules.ts"
import { assertArguments } from "./Mistakes.ts"
import type { Run } from "./Run.ts"

export interface Proxies {
  readonly proxies: {
    /**
     * Proxy sessions, in the order in which they were opened: of all accounts or of one, and with `open` those that can be used now. Bytes
     * and connections are those of all nodes, as they were counted some seconds ago. Reads the whole log.
     */
    readonly sessions: (options?: {
      /** The account's id, or the host's own. */
      readonly account?: string
      readonly open?: boolean
    }) => Promise<ReadonlyArray<Acts.ListedSession>>
    /** Ends a session: no node admits it any more, and its connections are closed within seconds. What it cost is not refunded. */
    readonly end: (session: string, recorded?: Recorded) => Promise<Acts.ListedSession>
  }
}

export const proxiesOf = (run: Run<Millrace.Administration | EventStore.EventStore | ProxySessions>): Proxies => ({
  proxies: {
    sessions: async (options = {}) => {
      assertArguments("proxies.sessions", options, SESSIONS)
      const { account, open = false } = options
      return run(
        Effect.gen(function* () {
          const id = account === undefined ? undefined : yield* resolve(account)
          const listed = yield* Acts.list(open)
          return id === undefined ? listed : listed.filter((session) => session.account === id)
        })
      )
    },
    end: (session, recorded) => run(Acts.end(session, metadata("proxies.end", recorded)))
  }
})
