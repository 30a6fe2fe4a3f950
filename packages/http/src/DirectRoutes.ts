/**
 * Finds the direct route of a request, among all routes of a handler. It sees what is added to the router, and finds routes as the router
 * does, so that a route or a middleware of the host is never passed by.
 */
import { type Context, Effect } from "effect"
import { FindMyWay, HttpRouter } from "effect/http"
import type { DirectRoute, Found } from "./DirectRoute.ts"

type Router = HttpRouter.HttpRouter
type Route = HttpRouter.Route<unknown, unknown>
type Middleware = Parameters<Router["addGlobalMiddleware"]>[0]

/** What Effect's router puts before the keys of the middleware that a host has laid around some routes. */
const MIDDLEWARE = "effect/http/HttpRouter/Middleware-"

export class DirectRoutes {
  readonly #found: FindMyWay.Router<DirectRoute | undefined>
  readonly #direct = new WeakMap<object, DirectRoute>()
  readonly #own = new WeakSet<object>()
  /** Whether something was added that only the router knows how to run. */
  #isHidden = false

  constructor(config: Partial<FindMyWay.RouterConfig>) {
    this.#found = FindMyWay.make(config)
  }

  /** Names the direct route of a route, if it has one, before the route is added. */
  set(route: object, direct: DirectRoute | undefined): void {
    if (direct !== undefined) this.#direct.set(route, direct)
  }

  /** Names a middleware whose work direct routes do themselves, before it is added. */
  replaces(middleware: object): void {
    this.#own.add(middleware)
  }

  /** The direct route of a request, and what its path and query contain. */
  find(method: string, url: string): (Pick<Found, "params" | "query"> & { readonly direct: DirectRoute }) | undefined {
    const found = this.#isHidden ? undefined : this.#found.find(method, url)
    return found?.handler === undefined ? undefined : { direct: found.handler, params: found.params, query: found.searchParams }
  }

  /** The same router. What is added to it is noted here. */
  watching(router: Router): Router {
    const addAll: Router["addAll"] = (routes) =>
      Effect.contextWith((context: Context.Context<never>) => {
        const isAround = [...context.mapUnsafe.keys()].some((key) => key.startsWith(MIDDLEWARE))
        for (const route of routes) this.#add(route, isAround ? undefined : this.#direct.get(route))
        return router.addAll(routes)
      })
    return HttpRouter.HttpRouter.of({
      ...router,
      addAll,
      add: (method, path, handler, options) => addAll([HttpRouter.route(method, path, handler, options)]),
      prefixed: (prefix) => {
        this.#isHidden = true
        return router.prefixed(prefix)
      },
      addGlobalMiddleware: (middleware: Middleware) => {
        if (!this.#own.has(middleware)) this.#isHidden = true
        return router.addGlobalMiddleware(middleware)
      }
    } as Router)
  }

  /** As Effect's router adds a route. */
  #add({ method, path }: Pick<Route, "method" | "path">, direct: DirectRoute | undefined): void {
    const paths = path.endsWith("/*") ? [path, path.slice(0, -2) as HttpRouter.PathInput] : [path]
    for (const path of paths) {
      if (method === "*") this.#found.all(path, direct)
      else this.#found.on(method, path, direct)
    }
  }
}
