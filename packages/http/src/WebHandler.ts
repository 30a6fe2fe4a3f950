/** The routes as one function from a web `Request` to a web `Response`, for whatever server a host has. */
import { Context, type Duration, Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
import { HttpEffect, HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Closing } from "./Edge.ts"

/** What a `Request` does not say. */
export interface Peer {
  /** The client's IP address, as far as the host trusts whoever says so. Without one, failed authentications are not limited. */
  readonly address?: string | undefined
}

export interface WebHandler {
  /** Never rejects. When the request's signal aborts before the call is settled, the call is cancelled and refunded. */
  readonly handle: (request: Request, peer?: Peer) => Promise<Response>
  /** Answers new requests with 503, lets running ones end within `bound`, and cancels those that have not by then. */
  readonly drain: Effect.Effect<void>
}

export interface Options {
  /** How long running requests may take to end when the handler closes: 30 seconds by default. */
  readonly drainWithin?: Duration.Input
}

/** Paths are compared as they are; a parameter may be as long as its own schema allows. */
export const routerConfig = { caseSensitive: true, ignoreDuplicateSlashes: false, maxParamLength: 8_192 } as const

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
    const context = Context.add(yield* Effect.context<never>(), Closing, () => isClosing)
    const run = Effect.runForkWith(context)

    const handle: WebHandler["handle"] = (request, { address } = {}) =>
      new Promise((resolve) => {
        const incoming = HttpServerRequest.fromWeb(request).modify({ remoteAddress: Option.fromNullishOr(address) })
        const respond = (_: HttpServerRequest.HttpServerRequest, response: HttpServerResponse.HttpServerResponse) =>
          Effect.sync(() => {
            const withoutBody = request.method === "HEAD"
            const sent = withoutBody ? response : HttpEffect.scopeTransferToStream(response)
            resolve(HttpServerResponse.toWeb(sent, { withoutBody, context, signal: request.signal }))
          })
        const answered = HttpEffect.toHandled(router.asHttpEffect(), respond)
        const fiber = run(Effect.provideService(answered, HttpServerRequest.HttpServerRequest, incoming))
        if (fiber.pollUnsafe() !== undefined) return
        running.add(fiber)
        const abort = () => fiber.interruptUnsafe(undefined, HttpServerError.ClientAbort.annotation)
        request.signal.addEventListener("abort", abort, { once: true })
        if (request.signal.aborted) abort()
        fiber.addObserver(() => {
          request.signal.removeEventListener("abort", abort)
          running.delete(fiber)
          if (running.size === 0) lastEnded()
        })
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
    return { handle, drain }
  })

/**
 * For a host without Effect: builds everything from layers that need nothing more. `dispose` drains, then closes them. A request that
 * comes before all is built waits for it; when it cannot be built, `ready` rejects and so does every call.
 */
export const fromLayer = <E>(
  routes: Layer.Layer<never, E, HttpRouter.HttpRouter>,
  options: Options = {}
): { readonly handle: WebHandler["handle"]; readonly ready: Promise<void>; readonly dispose: () => Promise<void> } => {
  const scope = Scope.makeUnsafe()
  const made = Effect.runPromise(Scope.provide(make(routes, options), scope))
  const ready = made.then(() => {})
  // Told to whoever calls
  ready.catch(() => {})
  let disposed: Promise<void> | undefined
  return {
    handle: (request, peer) => made.then(({ handle }) => handle(request, peer)),
    ready,
    dispose: () => (disposed ??= Effect.runPromise(Scope.close(scope, Exit.void)))
  }
}
