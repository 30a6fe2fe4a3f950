/**
 * Signing up, signing in by a mailed link, and sessions: routes for web pages of this host, beside those of `Http.layer`. The answers to a
 * sign-up and to a question for a link are the same for every address.
 */
import { EmailAddress, InvalidEmail, type Sessions, SignInLink, toIso } from "@millrace/core"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import type { Exchange } from "../Exchange.ts"
import * as Cookies from "./Cookies.ts"
import * as PasskeyRoutes from "./PasskeyRoutes.ts"
import * as SameOrigin from "./SameOrigin.ts"
import * as Endpoints from "./SessionEndpoints.ts"
import * as SessionNeeds from "./SessionNeeds.ts"
import { type Answer, clientOf, type Described, type Given, routeOf } from "./SessionRoute.ts"
import * as SignInPage from "./SignInPage.ts"

export type { Settings } from "./SessionNeeds.ts"

/** The routes of sign-ups, sessions and passkeys, and the page that mailed links lead to. */
export const layer = (settings: SessionNeeds.Settings): Layer.Layer<never, never, HttpRouter.HttpRouter | SessionNeeds.Services> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const router = yield* HttpRouter.HttpRouter
      const needs = yield* SessionNeeds.make(settings)
      yield* router.addAll([...asking(needs), ...following(needs), ...reading(needs), ...ending(needs)].map((route) => routeOf(route)))
      yield* router.addAll(PasskeyRoutes.routes(needs))
      yield* router.addAll(SignInPage.routesOf({ service: needs.service, home: settings.home ?? "/" }))
    })
  )

type Needs = SessionNeeds.SessionNeeds

// links

const MAILED: Pick<Answer, "status" | "data" | "isPending"> = {
  status: 202,
  data: { expires_in: SignInLink.LIFETIME / 1000 },
  isPending: true
}

const asking = (needs: Needs): ReadonlyArray<Described> => {
  const { access, baseFor, limits, service, signIn } = needs

  /** Everything before a link is mailed. None of it depends on whether the address has an account. */
  const admitted = Effect.fnUntraced(function* ({ exchange, input, request }: Given) {
    yield* SameOrigin.check(request)
    exchange.rate = yield* access.admitClient(request)
    const email = EmailAddress.normalise(input["address"] ?? "") ?? (yield* new InvalidEmail())
    yield* limits.asked(request)
    yield* limits.mailed(email)
    const base = (yield* baseFor(request)).href.replace(/\/$/u, "")
    return { email, service, linkOf: (token: string) => `${base}${SignInPage.PATH}#${token}` }
  })

  return [
    {
      method: "POST",
      path: Endpoints.SIGN_UP,
      body: Endpoints.Address,
      answer: Effect.fnUntraced(function* (given) {
        const { exchange, request } = given
        const ask = { ...(yield* admitted(given)), current: Cookies.sessionOf(request), client: clientOf(request) }
        const { browser, token } = yield* signIn.signUp(ask, { $correlationId: exchange.id })
        return { ...MAILED, cookies: [Cookies.withSession(token), Cookies.withBrowser(browser)] }
      })
    },
    {
      method: "POST",
      path: Endpoints.SESSIONS,
      body: Endpoints.Address,
      answer: Effect.fnUntraced(function* (given) {
        const { browser } = yield* signIn.ask(yield* admitted(given), { $correlationId: given.exchange.id })
        return { ...MAILED, cookies: [Cookies.withBrowser(browser)] }
      })
    }
  ]
}

const following = (needs: Needs): ReadonlyArray<Described> => [
  {
    method: "POST",
    path: Endpoints.LINK,
    body: Endpoints.LinkToken,
    answer: Effect.fnUntraced(function* ({ exchange, input, request }) {
      yield* SameOrigin.check(request)
      exchange.rate = yield* needs.access.admitClient(request)
      const follow = {
        token: input["token"] ?? "",
        browser: Cookies.browserOf(request),
        current: Cookies.sessionOf(request),
        client: clientOf(request)
      }
      return yield* needs.answers.opened(yield* needs.signIn.follow(follow, { $correlationId: exchange.id }), exchange)
    })
  }
]

// sessions

const reading = (needs: Needs): ReadonlyArray<Described> => [
  {
    method: "GET",
    path: Endpoints.CURRENT,
    answer: Effect.fnUntraced(function* (given) {
      return { status: 200, data: yield* needs.answers.shown(yield* needs.signedIn(given)) }
    })
  },
  {
    method: "GET",
    path: Endpoints.SESSIONS,
    answer: Effect.fnUntraced(function* (given) {
      const { accountId, sessionId: own } = yield* needs.signedIn(given)
      const sessions = yield* needs.sessions.list(accountId)
      return { status: 200, data: { sessions: sessions.map((session) => listed(session, own)) } }
    })
  }
]

const listed = (
  { client, endsAt, openedAt, proof, sessionId, usedAt }: Effect.Success<ReturnType<Sessions["Service"]["list"]>>[number],
  own: string
): typeof Endpoints.ListedSession.Type => ({
  session_id: sessionId,
  current: sessionId === own,
  proof,
  opened_at: toIso(openedAt),
  used_at: toIso(usedAt),
  ends_at: toIso(endsAt),
  user_agent: client.userAgent,
  ip: client.address
})

const FORGET = [Cookies.without(Cookies.SESSION)]

const ending = (needs: Needs): ReadonlyArray<Described> => {
  const end = (accountId: string, sessionId: string, { id }: Exchange) => needs.sessions.end(accountId, sessionId, { $correlationId: id })
  return [
    {
      method: "DELETE",
      path: Endpoints.CURRENT,
      answer: Effect.fnUntraced(function* (given) {
        const { accountId, sessionId } = yield* needs.signedIn(given)
        yield* end(accountId, sessionId, given.exchange)
        return { status: 200, data: { ended: 1 }, cookies: FORGET }
      })
    },
    {
      method: "DELETE",
      path: Endpoints.ONE,
      params: Endpoints.SessionId,
      answer: Effect.fnUntraced(function* (given) {
        const { accountId, sessionId } = yield* needs.signedIn(given)
        const ended = given.input["session_id"] ?? ""
        yield* end(accountId, ended, given.exchange)
        return { status: 200, data: { ended: 1 }, cookies: ended === sessionId ? FORGET : [] }
      })
    },
    {
      method: "DELETE",
      path: Endpoints.SESSIONS,
      answer: Effect.fnUntraced(function* (given) {
        const { accountId } = yield* needs.signedIn(given)
        const ended = yield* needs.sessions.endAll(accountId, { $correlationId: given.exchange.id })
        return { status: 200, data: { ended }, cookies: FORGET }
      })
    }
  ]
}
