/** How a browser learns of its session: after whatever proof it signs in, and when it asks. */
import { Ledger, type NewSession, Registration, Sessions, type SignedIn, toIso } from "@millrace/core"
import { Effect, Redacted } from "effect"
import type { Exchange } from "../Exchange.ts"
import type { Failure } from "../Problem.ts"
import * as Cookies from "./Cookies.ts"
import type { CurrentSession } from "./SessionEndpoints.ts"
import type { Answer } from "./SessionRoute.ts"

export interface SignedInAnswers {
  /** The data of a session. */
  readonly shown: (session: SignedIn) => Effect.Effect<typeof CurrentSession.Type, Failure>
  /** The answer that signs a browser in: it gets the new session, and forgets what it kept for a mailed link. */
  readonly opened: (session: NewSession, exchange: Exchange) => Effect.Effect<Answer, Failure>
}

export const make: Effect.Effect<SignedInAnswers, never, Ledger | Registration | Sessions> = Effect.gen(function* () {
  const ledger = yield* Ledger
  const registration = yield* Registration
  const sessions = yield* Sessions

  const shown: SignedInAnswers["shown"] = Effect.fnUntraced(function* ({ accountId, csrfToken, expiresAt, proof, sessionId }) {
    const { verified } = (yield* ledger.read(accountId)).state
    return {
      session_id: sessionId,
      account_id: accountId,
      verified,
      address: (yield* registration.email(accountId)) ?? null,
      proof,
      expires_at: toIso(expiresAt),
      csrf_token: csrfToken
    }
  })

  const opened: SignedInAnswers["opened"] = Effect.fnUntraced(function* ({ token }, exchange) {
    const session = yield* sessions.authenticate(Redacted.value(token))
    exchange.accountId = session.accountId
    return { status: 201, data: yield* shown(session), cookies: [Cookies.withSession(token), Cookies.without(Cookies.BROWSER)] }
  })

  return { shown, opened }
})
