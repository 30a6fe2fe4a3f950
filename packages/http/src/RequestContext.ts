/**
 * The services of the routes, for each request. `Effect.provideContext` merges two contexts by copying every service of both, which was a
 * third of the memory that a request left behind. So a handler merges them once, when it is built: see {@link Sharing}.
 */
import { Context, Effect } from "effect"
import { DirectRoutes } from "./DirectRoutes.ts"

/** Collects the services of the routes, and their direct routes, while a handler is built. */
export class Sharing {
  readonly direct: DirectRoutes

  constructor(config: ConstructorParameters<typeof DirectRoutes>[0]) {
    this.direct = new DirectRoutes(config)
  }

  /** Of the routes that were built first. Others bring their own services to each request. */
  services: Context.Context<never> | undefined
}

/** Where routes leave their services; undefined where nothing collects them, such as in a host's own `HttpRouter.serve`. */
export const CurrentSharing = Context.Reference<Sharing | undefined>("@millrace/http/Sharing", { defaultValue: () => undefined })

/** The services that the handler has given to this request. */
const Given = Context.Reference<Context.Context<never> | undefined>("@millrace/http/Given", { defaultValue: () => undefined })

/** Leaves the services of routes for the handler that is being built. */
export const share = <R>(services: Context.Context<R>): Effect.Effect<void> =>
  Effect.map(CurrentSharing, (sharing) => {
    if (sharing !== undefined) sharing.services ??= services as Context.Context<never>
  })

/** The most services that a request lays over its context until all are copied: more than a request adds. */
const OVERLAYS = 24

/** The context of all requests of a handler: the one around it, and the shared services. */
export const make = (around: Context.Context<never>, { services }: Sharing): Context.Context<never> => {
  const all = services === undefined ? around : Context.merge(around, services)
  return Context.makeUnsafe(new Map(Context.add(all, Given, services).mapUnsafe), { maxDepth: OVERLAYS })
}

/** Returns a function that runs an effect of a request with these services. */
export const within =
  <R>(services: Context.Context<R>) =>
  <A, E, R2>(effect: Effect.Effect<A, E, R2>): Effect.Effect<A, E, Exclude<R2, R>> =>
    Effect.withFiber(({ context }) =>
      Context.getOrUndefined(context, Given) === services
        ? (effect as Effect.Effect<A, E, Exclude<R2, R>>)
        : Effect.provideContext(effect, services)
    )
