/**
 * `GET /api/v1/account/events`: what happens to the caller's account, as server-sent events, for pages that stay open. Each event is a hint
 * with the balance of now; whoever shows more reads it again. The stream ends with the key or session that opened it.
 */
import { AccountWatch, Credits, Ledger } from "@millrace/core"
import { Clock, Duration, Effect, Option, Schema, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Access from "./Access.ts"
import { CurrentExchange } from "./Exchange.ts"
import { problemOf, responseOf } from "./Problem.ts"
import { InsufficientScope, MethodNotAllowed } from "./Refusal.ts"
import { Closing } from "./RequestMiddleware.ts"
import { EVENTS } from "./SystemEndpoints.ts"

/** The scope that a key needs, as those of the other reads of the account. */
const SCOPE = "read"

/** Milliseconds after which a stream says that it lives, and asks whether its key or session still does. */
const HEARTBEAT = Duration.toMillis("20 seconds")
/** How often it looks whether the server is about to end. */
const LOOK = "500 millis"
/** The pause before an event, so that a burst of calls becomes few events. */
const PAUSE = "100 millis"
/** Seconds after which a client that was refused may come again. */
const COME_AGAIN = 30

/** The data of an event. Amounts in decimal credits. */
export const Changed = Schema.Struct({
  /** Available credits. */
  balance: Credits.CreditsFromDecimal,
  held: Credits.CreditsFromDecimal,
  debt: Credits.CreditsFromDecimal,
  /** Whether anything happened to the account's credits or calls since the last event. */
  account: Schema.Boolean,
  /** Jobs and inboxes to which something happened since: at most a hundred of each. */
  jobs: Schema.Array(Schema.String),
  inboxes: Schema.Array(Schema.String)
})
const encodeChanged = Schema.encodeSync(Schema.fromJsonString(Changed))

const NOTHING: AccountWatch.Hint = { account: false, jobs: [], inboxes: [] }

/** The route. */
export const make = Effect.gen(function* () {
  const access = yield* Access.make
  const watches = yield* AccountWatch.AccountWatch
  const ledger = yield* Ledger
  const clock = yield* Clock.Clock

  const callerOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    // A stream has no answer to HEAD but the stream
    if (request.method !== "GET") return yield* new MethodNotAllowed({ allow: ["GET"] })
    const exchange = yield* CurrentExchange
    const caller = yield* access.authenticate(request)
    exchange.accountId = caller.accountId
    exchange.rate = yield* access.admit(caller.accountId)
    if (!caller.scopes.includes(SCOPE)) return yield* new InsufficientScope({ scope: SCOPE })
    return caller.accountId
  })

  const changed = (accountId: string, hint: AccountWatch.Hint) =>
    Effect.map(
      ledger.balance(accountId),
      ({ available, debt, held }) => `event: changed\ndata: ${encodeChanged({ balance: available, held, debt, ...hint })}\n\n`
    )

  /** The text of the stream: an event at once, then one after each change, and a comment after each silence. Ends when it has to. */
  const textOf = (accountId: string, isOpen: () => boolean, isKnown: Effect.Effect<boolean>) =>
    Stream.unwrap(
      Effect.map(watches.watch(accountId), (watcher) => {
        const step = Effect.fnUntraced(function* ({ isFirst, provenAt }: { readonly provenAt: number; readonly isFirst: boolean }) {
          if (isFirst) return [yield* changed(accountId, NOTHING), { provenAt, isFirst: false }] as const
          while (isOpen()) {
            const isWoken = Option.isSome(yield* Effect.timeoutOption(watcher.woken, LOOK))
            const now = clock.currentTimeMillisUnsafe()
            const isDue = now - provenAt >= HEARTBEAT
            if (isDue && !(yield* isKnown)) return undefined
            const next = { provenAt: isDue ? now : provenAt, isFirst: false }
            if (isWoken) {
              yield* Effect.sleep(PAUSE)
              return [yield* changed(accountId, watcher.take()), next] as const
            }
            if (isDue) return [": alive\n\n", next] as const
          }
          return undefined
        })
        return Stream.unfold({ provenAt: clock.currentTimeMillisUnsafe(), isFirst: true }, step)
      })
    )

  const answer = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const isClosing = yield* Closing
    const accountId = yield* callerOf(request)
    // The stream watches as long as it is read. It checks again: the answer has begun by then, so it can only end
    if (watches.size(accountId) >= AccountWatch.WATCHERS) return yield* new AccountWatch.TooManyWatchers({ limit: AccountWatch.WATCHERS })
    const isKnown = access.authenticate(request).pipe(
      Effect.map((caller) => caller.accountId === accountId),
      // Only a key or session that has ended ends the stream; a store that is away does not
      Effect.catch(({ _tag }) => Effect.succeed(_tag !== "Unauthorized" && _tag !== "TooManyFailures"))
    )
    // A failure ends the stream: its reader comes again, and is told then what is wrong
    const text = Stream.catch(
      textOf(accountId, () => !isClosing(), isKnown),
      () => Stream.empty
    ).pipe(Stream.provideService(Clock.Clock, clock))
    return HttpServerResponse.stream(Stream.encodeText(text), {
      contentType: "text/event-stream",
      // Proxies that would collect the stream are asked not to
      headers: { "cache-control": "private, no-store", "x-accel-buffering": "no" }
    })
  })

  return HttpRouter.route(
    "GET",
    EVENTS,
    Effect.gen(function* () {
      const exchange = yield* CurrentExchange
      exchange.route = EVENTS
      return yield* Effect.catch(answer, (failure) => {
        const problem =
          failure._tag === "TooManyWatchers"
            ? ({
                code: "rate_limited",
                message: `${failure.limit} streams of this account are open already.`,
                headers: { "retry-after": String(COME_AGAIN) }
              } as const)
            : problemOf(failure)
        return Effect.succeed(responseOf(problem, exchange.id))
      })
    })
  )
})
