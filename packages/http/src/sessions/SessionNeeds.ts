/** What the routes of sign-ups, sessions and passkeys need, and how they take up a session. */
import {
  type AuthThrottle,
  type KeyRing,
  type Ledger,
  Passkeys,
  RandomBytes,
  type RateLimit,
  type Registration,
  Sessions,
  type SignedIn,
  SignIn,
  type Vault
} from "@millrace/core"
import type { StateStore } from "@millrace/event-sourcing"
import { Effect, type Scope } from "effect"
import * as Access from "../Access.ts"
import type { Failure } from "../Problem.ts"
import * as Loopback from "./Loopback.ts"
import type { Given, Request } from "./SessionRoute.ts"
import * as SignedInAnswers from "./SignedIn.ts"
import * as SignInLimits from "./SignInLimits.ts"

export interface Settings {
  /**
   * The address under which people reach this server, such as `https://api.example.com`. Mailed links lead there, and passkeys belong to its
   * host name. It is never taken from a request, whose sender chooses it; only between names of the same machine, the request decides.
   */
  readonly publicUrl: Effect.Effect<URL>
  /** How the host calls itself in mails, on the page that they lead to, and to authenticators: `Millrace` by default. One line. */
  readonly service?: string
  /** The path below the public address that a browser opens once a link has signed it in: `/` by default. False: it stays on the page. */
  readonly home?: `/${string}` | false
  readonly limits?: SignInLimits.Options
}

export interface SessionNeeds {
  /** The name of the service. */
  readonly service: string
  readonly access: Access.Access
  readonly limits: SignInLimits.SignInLimits
  readonly signIn: SignIn["Service"]
  readonly sessions: Sessions["Service"]
  readonly passkeys: Passkeys["Service"]
  /** For the secrets that browsers keep. */
  readonly random: RandomBytes
  readonly answers: SignedInAnswers.SignedInAnswers
  /** Where this browser reaches the server. */
  readonly baseFor: (request: Request) => Effect.Effect<URL>
  /** The session of a request, counted against the rate of its account. */
  readonly signedIn: (given: Given<unknown>) => Effect.Effect<SignedIn, Failure>
}

/** The services behind the routes. */
export type Services =
  | SignIn
  | Sessions
  | Passkeys
  | Registration
  | Ledger
  | KeyRing
  | AuthThrottle
  | RateLimit
  | Vault.Vault
  | StateStore.StateStore

export const make = Effect.fnUntraced(function* ({
  limits,
  publicUrl,
  service = "Millrace"
}: Settings): Effect.fn.Return<SessionNeeds, never, Services | Scope.Scope> {
  const access = yield* Access.make
  return {
    service,
    access,
    limits: yield* SignInLimits.make(limits),
    signIn: yield* SignIn,
    sessions: yield* Sessions,
    passkeys: yield* Passkeys,
    random: yield* RandomBytes,
    answers: yield* SignedInAnswers.make,
    baseFor: (request) => Effect.map(publicUrl, (url) => Loopback.baseOf(url, request)),
    signedIn: Effect.fnUntraced(function* ({ exchange, request }) {
      const session = yield* access.signedIn(request, true)
      exchange.accountId = session.accountId
      exchange.rate = yield* access.admit(session.accountId)
      return session
    })
  }
})
