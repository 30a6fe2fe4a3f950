/** Adding, listing and removing passkeys, and signing in with one: routes for web pages of this host. */
import { type ListedPasskey, Passkey, type PasskeyChallenge, Token, toIso } from "@millrace/core"
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server"
import { Effect, Redacted, type Schema } from "effect"
import type { HttpRouter } from "effect/http"
import * as Cookies from "./Cookies.ts"
import * as Endpoints from "./PasskeyEndpoints.ts"
import * as RelyingParty from "./RelyingParty.ts"
import * as SameOrigin from "./SameOrigin.ts"
import type { SessionNeeds } from "./SessionNeeds.ts"
import { clientOf, type Described, type Request, routeOf } from "./SessionRoute.ts"

type Routes = ReadonlyArray<HttpRouter.Route<never, never>>

export const routes = (needs: SessionNeeds): Routes => [...signingIn(needs), ...adding(needs), ...owning(needs)]

const partyFor = ({ baseFor, service }: SessionNeeds, request: Request) =>
  Effect.flatMap(baseFor(request), (base) => RelyingParty.of(base, service))

// signing in

const signInWith = (browser: string): PasskeyChallenge.Purpose => ({ _tag: "signIn", browser })

const refused = (reason: Passkey.RefusalReason) => Effect.fail(new Passkey.PasskeyRefused({ reason }))

type Signature = Schema.Struct.Type<typeof Endpoints.Signature>

const signingIn = (needs: SessionNeeds): Routes => {
  const { access, answers, passkeys, sessions } = needs

  const asked: Described = {
    method: "POST",
    path: Endpoints.SIGN_IN_OPTIONS,
    admit: SameOrigin.check,
    answer: Effect.fnUntraced(function* ({ exchange, request }) {
      exchange.rate = yield* access.admitClient(request)
      const party = yield* partyFor(needs, request)
      const browser = Token.newSecret(needs.random)
      const options = yield* RelyingParty.requestOptions(party, yield* passkeys.challenge(signInWith(browser)))
      return { status: 200, data: { options }, cookies: [Cookies.withPasskey(Redacted.make(browser))] }
    })
  }

  /** The passkey of an answer, whose challenge is used up with it. */
  const proved = Effect.fnUntraced(function* (request: Request, response: AuthenticationResponseJSON, requestId: string) {
    const party = yield* partyFor(needs, request)
    const text = yield* RelyingParty.challengeOf(response)
    const challenge = yield* passkeys.challenged(signInWith(Cookies.passkeyOf(request) ?? ""), text)
    const { accountId, credential, passkeyId } = yield* Effect.catchTag(passkeys.find(response.id), "SubjectDestroyed", () =>
      refused("unknown")
    )
    const counter = yield* RelyingParty.signed(party, response, text, credential)
    // Authenticators name the account that they keep the passkey for
    const user = response.response.userHandle
    if (user !== undefined && user !== passkeys.userIdOf(accountId)) return yield* refused("invalid")
    yield* passkeys.use(passkeyId, challenge, counter, { $correlationId: requestId })
    return { accountId, passkeyId }
  })

  const signed: Described<Signature> = {
    method: "POST",
    path: Endpoints.SIGN_IN,
    body: Endpoints.Signature,
    admit: SameOrigin.check,
    answer: Effect.fnUntraced(function* ({ exchange, input, request }) {
      exchange.rate = yield* access.admitClient(request)
      const { response, ...credential } = input.credential
      const { userHandle, ...parts } = response
      const answered = { ...credential, response: { ...parts, ...(userHandle == null ? {} : { userHandle }) } }
      const { accountId, passkeyId } = yield* proved(request, answered as AuthenticationResponseJSON, exchange.id)
      const opening = { accountId, proof: "passkey", proofId: passkeyId, client: clientOf(request) } as const
      const session = yield* sessions
        .open({ ...opening, current: Cookies.sessionOf(request) }, { $correlationId: exchange.id })
        .pipe(Effect.catchTag(["AccountNotFound", "AccountClosed"], () => refused("unknown")))
      const { cookies = [], ...answer } = yield* answers.opened(session, exchange)
      return { ...answer, cookies: [...cookies, Cookies.without(Cookies.PASSKEY)] }
    })
  }

  return [routeOf(asked), routeOf(signed)]
}

// adding

type Addition = Schema.Struct.Type<typeof Endpoints.Addition>

const adding = (needs: SessionNeeds): Routes => {
  const { access, answers, passkeys, signedIn } = needs

  const asked: Described = {
    method: "POST",
    path: Endpoints.OPTIONS,
    answer: Effect.fnUntraced(function* (given) {
      const session = yield* signedIn(given)
      const { accountId, sessionId } = session
      const party = yield* partyFor(needs, given.request)
      const { address } = yield* answers.shown(session)
      const user = { id: passkeys.userIdOf(accountId), name: address ?? accountId, has: yield* passkeys.list(accountId) }
      const options = yield* RelyingParty.creationOptions(party, user, yield* passkeys.challenge({ _tag: "add", accountId, sessionId }))
      return { status: 200, data: { options } }
    })
  }

  const added: Described<Addition> = {
    method: "POST",
    path: Endpoints.PASSKEYS,
    body: Endpoints.Addition,
    admit: (request) => Effect.asVoid(access.signedIn(request, true)),
    answer: Effect.fnUntraced(function* (given) {
      const { credential, name = null } = given.input
      const { accountId, sessionId } = yield* signedIn(given)
      const party = yield* partyFor(needs, given.request)
      const text = yield* RelyingParty.challengeOf(credential)
      yield* passkeys.challenged({ _tag: "add", accountId, sessionId }, text)
      const transports = [...(credential.response.transports ?? [])]
      const answered = { ...credential, response: { ...credential.response, transports } } as RegistrationResponseJSON
      const { counter, credentialId, publicKey } = yield* RelyingParty.added(party, answered, text)
      const passkey = yield* passkeys.add(
        accountId,
        { credentialId, publicKey, transports, name, counter },
        { $correlationId: given.exchange.id }
      )
      return { status: 201, data: recordOf(passkey) }
    })
  }

  return [routeOf(asked), routeOf(added)]
}

const recordOf = ({ addedAt, name, passkeyId, transports, usedAt }: ListedPasskey): typeof Endpoints.PasskeyRecord.Type => ({
  passkey_id: passkeyId,
  name,
  added_at: toIso(addedAt),
  used_at: usedAt === null ? null : toIso(usedAt),
  transports
})

// those of the account

const owning = ({ passkeys, signedIn }: SessionNeeds): Routes => {
  const listed: Described = {
    method: "GET",
    path: Endpoints.PASSKEYS,
    answer: Effect.fnUntraced(function* (given) {
      const { accountId } = yield* signedIn(given)
      return { status: 200, data: { passkeys: (yield* passkeys.list(accountId)).map(recordOf) } }
    })
  }
  const removed: Described = {
    method: "DELETE",
    path: Endpoints.ONE,
    params: Endpoints.PasskeyId,
    answer: Effect.fnUntraced(function* (given) {
      const { accountId } = yield* signedIn(given)
      const id = given.input["passkey_id"] ?? ""
      yield* passkeys.remove(accountId, id, { $correlationId: given.exchange.id })
      return { status: 200, data: { passkey_id: id, removed: true } }
    })
  }
  return [routeOf(listed), routeOf(removed)]
}
