/** The routes as one function from a web `Request` to a web `Response`, for whatever server a host has. */
import { Context, type Duration, Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
import { HttpEffect, HttpMiddleware, HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Closing } from "./Edge.ts"

/** What a `Request` does not say. */
export interface Peer {
  /** The client's IP address, as far as the host trusts whoever says so. Without one, failed authentications are not limited. */
  readonly address?: string | undefined
  /** Aborts when the client is gone: the request's own by default, but one beside it is cheaper. */
  readonly signal?: AbortSignal
}

/** Never rejects. When the client goes before its call is settled, the call is cancelled and refunded. */
export interface Handle {
  (request: Request, peer?: Peer): Promise<Response>
  /** The same without the web `Response`, which costs more than the rest of the way to a Node socket. */
  readonly answer?: (request: Request, peer?: Peer) => Promise<HttpServerResponse.HttpServerResponse>
}

export interface WebHandler {
  readonly handle: Handle
  /** Answers new requests with 503, lets running ones end within the bound, and cancels those that have not by then. */
  readonly drain: Effect.Effect<void>
}

export interface Options {
  /** How long running requests may take to end when the handler closes: 30 seconds by default. */
  readonly drainWithin?: Duration.Input
}

/** Paths are compared as they are; a parameter may be as long as its own schema allows. */
export const routerConfig = { caseSensitive: true, ignoreDuplicateSlashes: false, maxParamLength: 8_192 } as const

/** Where the answer to a request goes. */
const Respond = Context.Reference<(response: HttpServerResponse.HttpServerResponse) => void>("@millrace/http/Respond", {
  defaultValue: () => () => {}
})

/** Serves the routes for as long as the scope is open; when it closes, it drains first. */
export const make = <E, R>(
  routes: Layer.Layer<never, E, R | HttpRouter.HttpRouter>,
  { drainWithin = "30 seconds" }: Options = {}
): Effect.Effect<WebHandler, E, Exclude<R, HttpRouter.HttpRouter> | Scope.Scope> =>
  Effect.gen(function* () {
    const router = yield* Layer.build(Layer.provideMerge(routes, HttpRouter.layer)).pipe(
      Effect.provideService(HttpRouter.RouterConfig, routerConfig),
      Effect.map(Context.get(HttpRouter.HttpRouter))
    )
    const running = new Set<Fiber.Fiber<unknown, unknown>>()
    let isClosing = false
    let lastEnded = () => {}
    // Requests are traced at the edge: the spans of Effect's own server show whole addresses
    const context = (yield* Effect.context<never>()).pipe(
      Context.add(Closing, () => isClosing),
      Context.add(HttpMiddleware.TracerDisabledWhen, () => true)
    )
    const run = Effect.runForkWith(context)

    const answered = HttpEffect.toHandled(router.asHttpEffect(), (_, response) =>
      Effect.map(Respond, (respond) => respond(HttpEffect.scopeTransferToStream(response)))
    )

    const answer = (request: Request, { address, signal = request.signal }: Peer = {}) =>
      new Promise<HttpServerResponse.HttpServerResponse>((resolve) => {
        const incoming = HttpServerRequest.fromWeb(request).modify({ remoteAddress: Option.fromNullishOr(address) })
        const fiber = run(
          answered.pipe(Effect.provideService(HttpServerRequest.HttpServerRequest, incoming), Effect.provideService(Respond, resolve))
        )
        if (fiber.pollUnsafe() !== undefined) return
        running.add(fiber)
        const abort = () => fiber.interruptUnsafe(undefined, HttpServerError.ClientAbort.annotation)
        signal.addEventListener("abort", abort, { once: true })
        if (signal.aborted) abort()
        fiber.addObserver(() => {
          signal.removeEventListener("abort", abort)
          running.delete(fiber)
          if (running.size === 0) lastEnded()
        })
      })
    const handle = async (request: Request, peer: Peer = {}) =>
      HttpServerResponse.toWeb(await answer(request, peer), {
        withoutBody: request.method === "HEAD",
        context,
        signal: peer.signal ?? request.signal
      })

    const allEnded = Effect.callback<void>((resume) => {
      lastEnded = () => resume(Effect.void)
      if (running.size === 0) lastEnded()
    })
    const drain = Effect.gen(function* () {
      isClosing = true
      const ended = yield* Effect.timeoutOption(allEnded, drainWithin)
      if (Option.isNone(ended)) yield* Fiber.interruptAll(running)
    })
    yield* Effect.addFinalizer(() => Effect.interruptible(drain))
    return { handle: Object.assign(handle, { answer }), drain }
  })

/** A handler for a host without Effect. */
export interface Disposable {
  readonly handle: Handle
  /** Once all is built; rejects when it cannot be, as does every call then. */
  readonly ready: Promise<void>
  /** Drains, then closes the layers. */
  readonly dispose: () => Promise<void>
}

/** Builds everything from layers that need nothing more. A request that comes before all is built waits for it. */
export const fromLayer = <E>(routes: Layer.Layer<never, E, HttpRouter.HttpRouter>, options: Options = {}): Disposable => {
  const scope = Scope.makeUnsafe()
  const made = Effect.runPromise(Scope.provide(make(routes, options), scope))
  const ready = made.then(() => {})
  // Told to whoever asks
  ready.catch(() => {})
  let disposed: Promise<void> | undefined
  return {
    handle: (request, peer) => made.then(({ handle }) => handle(request, peer)),
    ready,
    dispose: () => (disposed ??= Effect.runPromise(Scope.close(scope, Exit.void)))
  }
}
