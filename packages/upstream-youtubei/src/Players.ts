/** The site's player, by which links become usable: found, kept by its id, and run in a worker thread. */
import { UpstreamUnavailable } from "@millrace/core"
import * as PublicReader from "@millrace/upstreams/public-reader"
import * as WorkerPool from "@millrace/upstreams/worker-pool"
import { Cache, Duration, Effect, Exit } from "effect"
import { type Extract, type Locked, type PlayerOrder, PlayerReply } from "./PlayerReply.ts"
import { UPSTREAM } from "./SiteClient.ts"

/** The worker's file has the extension of this one: `.ts` in the repository, `.js` in a published package. */
const SCRIPT = new URL(import.meta.url.endsWith(".ts") ? "./PlayerWorker.ts" : "./PlayerWorker.js", import.meta.url)

/** The site has a new player every few days, and shows an older one to some. */
const KEPT = 4

/** The part of a player that is kept, in characters: tens of thousands, usually. */
const EXTRACT_LIMIT = 1_000_000

/** Megabytes. The syntax tree of a script of 2.6 MB takes 260. */
const MEMORY = { maxOldGenerationSizeMb: 768, maxYoungGenerationSizeMb: 64, stackSizeMb: 4 }

const failed = (reason: string) => new UpstreamUnavailable({ upstream: UPSTREAM, reason, invalidReply: true })

const textOf = (reply: { readonly bytes: Uint8Array }): string => new TextDecoder().decode(reply.bytes)

export interface Players {
  /** The site's player of today. */
  readonly current: Effect.Effect<Extract, UpstreamUnavailable>
  /** Makes links usable, in their order; null from the one on at which the player's code fails. */
  readonly unlock: (player: Extract, links: ReadonlyArray<Locked>) => Effect.Effect<ReadonlyArray<string | null>, UpstreamUnavailable>
}

/** The first download that needs it starts the thread, which ends after a minute without one. */
export const make = Effect.fnUntraced(function* (base: URL, reader: PublicReader.Reader) {
  const pool = yield* WorkerPool.make<PlayerOrder, PlayerReply>({
    upstream: UPSTREAM,
    script: SCRIPT,
    reply: PlayerReply,
    resourceLimits: MEMORY,
    environment: "none",
    waitLimit: "20 seconds",
    timeLimit: "20 seconds",
    idleLimit: "1 minute"
  })
  const ask = (order: PlayerOrder) =>
    Effect.flatMap(pool.ask("player", [order]), ([reply]) =>
      reply === undefined ? Effect.die("One message has one reply") : Effect.succeed(reply)
    )

  const get = Effect.fnUntraced(function* (path: string) {
    const { data } = yield* Effect.catchTag(reader.read({ url: new URL(path, base), headers: { accept: "*/*" } }), "Refused", () =>
      Effect.fail(failed("it redirects to where nothing may be read"))
    )
    return data.status === 200 ? textOf(data) : yield* PublicReader.unexpected(UPSTREAM, data.status)
  })

  const players = yield* Cache.makeWith(
    Effect.fnUntraced(function* (id: string) {
      const script = yield* get(`/s/player/${id}/player_es6.vflset/en_US/base.js`)
      const reply = yield* ask({ _tag: "Analyse", id, script })
      if (reply._tag !== "Analysed") return yield* failed("its player has changed: nothing in it makes links usable")
      return reply.player.output.length > EXTRACT_LIMIT ? yield* failed("its player is too large") : reply.player
    }),
    { capacity: KEPT, timeToLive: (exit) => (Exit.isSuccess(exit) ? Duration.infinity : Duration.zero) }
  )

  const found: Players = {
    current: Effect.gen(function* () {
      const id = /player\\?\/([\w-]{4,40})\\?\//u.exec(yield* get("/iframe_api"))?.[1]
      return id === undefined ? yield* failed("it names no player") : yield* Cache.get(players, id)
    }),
    unlock: Effect.fnUntraced(function* (player, links) {
      const reply = yield* ask({ _tag: "Unlock", player, links })
      return reply._tag === "Unlocked" ? reply.urls : yield* failed("its player does not answer")
    })
  }
  return found
})
