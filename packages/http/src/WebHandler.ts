/** The routes as one function from a web `Request` to a web `Response`, for whatever server a host has. */
import { TraceContext } from "@millrace/core"
import { Context, type Duration, Effect, Exit, Layer, Option, Scope } from "effect"
import { HttpEffect, HttpMiddleware, HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { Answer } from "./Answer.ts"
import type { DirectCall, PlainRequest, Server } from "./DirectRoute.ts"
import type { DirectRoutes } from "./DirectRoutes.ts"
import { type Member, Members } from "./Members.ts"
import * as RequestContext from "./RequestContext.ts"
import { Closing } from "./RequestMiddleware.ts"

/** Facts about the client that a `Request` does not contain. */
export interface Peer {
  /** The client's IP address, from a trusted source. Without it, failed authentications are not limited. */
  readonly address?: string | undefined
  /** Aborts when the client is gone: by default the request's own signal. */
  readonly signal?: AbortSignal
}

/** The routes as an effect that answers the request of its context. It fails only by a defect. */
export type App = Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, HttpServerRequest.HttpServerRequest | Scope.Scope>

/** Never rejects. When the client disconnects before its call is settled, the call is cancelled and refunded. */
export interface Handle {
  (request: Request, peer?: Peer): Promise<Response>
  /** The same routes for servers that run effects, so that `toNodeHandler` needs no web `Request` and no web `Response`. */
  readonly app?: App
  /** The context in which `app` runs. */
  readonly context?: Context.Context<never>
  /** The direct way of plain calls, which a server tries before `app`; undefined for each request that `app` must answer. */
  readonly direct?: Direct
}

/**
 * `answered`: called once, possibly before `Direct` returns, with the answer unless the client has disconnected. It calls `sent` when the
 * answer needs the server no longer.
 */
export type Direct = (request: PlainRequest, answered: (answer: Answer | undefined, sent: () => void) => void) => DirectCall | undefined

export interface WebHandler {
  readonly handle: Handle
  /** Answers new requests with 503, lets running ones end within the bound, and cancels the others. */
  readonly drain: Effect.Effect<void>
}

export interface Options {
  /** How long running requests, downloads among them, may take to end when the handler closes: 30 seconds by default. */
  readonly drainWithin?: Duration.Input
}

/** Paths are compared as they are; a parameter may be as long as its own schema allows. */
export const routerConfig = { caseSensitive: true, ignoreDuplicateSlashes: false, maxParamLength: 8_192 } as const

/** The client's address, if the host passes it beside a web request. */
const PeerAddress = Context.Reference<string | undefined>("@millrace/http/PeerAddress", { defaultValue: () => undefined })

/** Serves the routes for as long as the scope is open; when it closes, it drains first. */
export const make = <E, R>(
  routes: Layer.Layer<never, E, R | HttpRouter.HttpRouter>,
  { drainWithin = "30 seconds" }: Options = {}
): Effect.Effect<
  WebHandler & { readonly handle: Required<Pick<Handle, "app" | "context" | "direct">> },
  E,
  Exclude<R, HttpRouter.HttpRouter> | Scope.Scope
> =>
  Effect.gen(function* () {
    const sharing = new RequestContext.Sharing(routerConfig)
    const watched = Layer.effect(
      HttpRouter.HttpRouter,
      Effect.map(HttpRouter.make, (router) => sharing.direct.watching(router))
    )
    const router = yield* Layer.build(Layer.provideMerge(routes, watched)).pipe(
      Effect.provideService(HttpRouter.RouterConfig, routerConfig),
      Effect.provideService(RequestContext.CurrentSharing, sharing),
      Effect.map(Context.get(HttpRouter.HttpRouter))
    )
    const running = runningRequests()
    const around = (yield* Effect.context<never>()).pipe(
      Context.add(Closing, running.isClosing),
      // The edge traces requests: the spans of Effect's own server show whole paths and queries
      Context.add(HttpMiddleware.TracerDisabledWhen, () => true)
    )
    const context = RequestContext.make(around, sharing)
    const app = running.tracked(router.asHttpEffect())
    // A traced request has spans, which need fibers
    const direct = TraceContext.isTraced(context) ? () => undefined : running.direct(sharing.direct, context)
    const drain = running.drain(drainWithin)
    yield* Effect.addFinalizer(() => Effect.interruptible(drain))
    return { handle: Object.assign(webHandle(app, context), { app, context, direct }), drain }
  })

/** A request that is being answered: its fiber, or a direct call. */
interface Running {
  readonly interruptUnsafe: () => void
}

/** Counts the running requests, so that a handler can close once they have ended. */
const runningRequests = () => {
  const running = new Members<Running>()
  let isClosing = false
  let allEnded = () => {}

  const ended = (request: Member<Running>) => {
    running.remove(request)
    if (running.size === 0) allEnded()
  }
  const untilAllEnded = Effect.callback<void>((resume) => {
    allEnded = () => resume(Effect.void)
    if (running.size === 0) allEnded()
  })

  return {
    /** Whether the handler refuses new requests because it is about to close. */
    isClosing: () => isClosing,
    /** Counts a request for as long as its fiber lives: until its answer is sent. */
    tracked: <A, E, R>(app: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.withFiber((fiber) => {
        const request = running.add(fiber)
        fiber.addObserver(() => ended(request))
        return app
      }),
    /** Answers by the direct routes, and counts each call until its answer is sent. */
    direct: (routes: DirectRoutes, context: Server["context"]): Direct => {
      const server: Server = { context, isClosing: () => isClosing }
      return (request, answered) => {
        const found = isClosing ? undefined : routes.find(request.method, request.url)
        if (found === undefined) return undefined
        // An answer may be sent before its call is returned
        let isSent = false
        let member: Member<Running> | undefined
        const sent = () => {
          isSent = true
          if (member !== undefined) ended(member)
        }
        const call = found.direct({ ...found, request }, server, (answer) => answered(answer, sent))
        if (call !== undefined && !isSent) member = running.add(call)
        return call
      }
    },
    /** Closes: waits until all running requests have ended, and interrupts those that have not ended within the bound. */
    drain: Effect.fnUntraced(function* (within: Duration.Input) {
      isClosing = true
      const inTime = yield* Effect.timeoutOption(untilAllEnded, within)
      if (Option.isSome(inTime)) return
      for (const request of running) request.interruptUnsafe()
      yield* untilAllEnded
    })
  }
}

/** An app as a function on web requests, run with the services of `context`. */
const webHandle = (app: App, context: Context.Context<never>): Handle => {
  const serve = HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest | Scope.Scope>(context)(
    Effect.flatMap(PeerAddress, (address) =>
      Effect.updateService(app, HttpServerRequest.HttpServerRequest, (request) =>
        request.modify({ remoteAddress: Option.fromNullishOr(address) })
      )
    )
  )
  return (request, { address, signal } = {}) =>
    serve(signal === undefined ? request : new Request(request, { signal }), Context.make(PeerAddress, address))
}

/** A handler for a host without Effect. */
export interface Disposable {
  readonly handle: Handle
  /** Resolves when all is built; rejects if that fails, as does every call then. */
  readonly ready: Promise<void>
  /** Drains, then closes the layers. */
  readonly dispose: () => Promise<void>
}

/** Builds a handler from complete layers. A request that arrives earlier waits until they are built. */
export const fromLayer = <E>(routes: Layer.Layer<never, E, HttpRouter.HttpRouter>, options: Options = {}): Disposable => {
  const scope = Scope.makeUnsafe()
  const made = Effect.runPromise(Scope.provide(make(routes, options), scope))
  const ready = made.then(() => {})
  // `ready` and every call report a failure to build, so it is no unhandled rejection
  ready.catch(() => {})
  let disposed: Promise<void> | undefined
  const app = Effect.flatMap(
    Effect.promise(() => made),
    ({ handle }) => Effect.provideContext(handle.app, handle.context)
  )
  let built: Direct | undefined
  made.then(
    ({ handle }) => {
      built = handle.direct
    },
    () => {}
  )
  const direct: Direct = (request, answered) => built?.(request, answered)
  return {
    handle: Object.assign(async (request: Request, peer?: Peer) => (await made).handle(request, peer), { app, direct }),
    ready,
    dispose: () => (disposed ??= Effect.runPromise(Scope.close(scope, Exit.void)))
  }
}
