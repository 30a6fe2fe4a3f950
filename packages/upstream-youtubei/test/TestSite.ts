/** The provider against a local site, on a test's clock. */
import { Video } from "@millrace/core"
import { YoutubeiVideoSite } from "@millrace/upstream-youtubei"
import { Context, Effect, Layer, Logger, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { type Answer, type Received, serve } from "../../upstreams/test/shared/LocalService.ts"
import * as SiteServer from "./SiteServer.ts"

export const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(Layer.merge(TestClock.layer(), Logger.layer([])))))

/** A request without a page. */
export const PAGE = { page_token: undefined, per_page: 25 }

/** `instead` may answer a request. `asked`: what the site was asked, as its path and what was sent. */
export const open = Effect.fnUntraced(function* (
  instead?: (request: Received) => Answer | undefined,
  options: YoutubeiVideoSite.Options = {}
) {
  const asked: Array<Received> = []
  const answer = SiteServer.answer(instead)
  const { url } = yield* serve((response, request) => {
    asked.push(request)
    answer(response, request)
  })
  const context = yield* Layer.build(YoutubeiVideoSite.layer({ baseUrl: url, retries: 0, ...options }))
  return { site: Context.get(context, Video.VideoSite), asked, paths: () => asked.map(({ path }) => path.split("?")[0] ?? "") }
})

/** The error of an effect, as its fields. */
export const failureOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.result(effect), (result) => (result._tag === "Failure" ? { ...result.failure } : { answered: result.success }))
