/**
 * Asks the site by youtubei.js. Each of the library's requests goes through `PublicReader`, within the bounds, the trace and the interruption of
 * the call that it belongs to.
 */
import { InvalidInput, NotFound, type Operation, UpstreamUnavailable } from "@millrace/core"
import * as PublicReader from "@millrace/upstreams/public-reader"
import { Data, Effect, Exit, Schema } from "effect"
import { Innertube, Log, Parser, Session } from "youtubei.js"
import type { Options } from "./Options.ts"
import { unknownPage } from "./PageTokens.ts"

export const UPSTREAM = "video"

/** All that the library asks is there. */
export const ORIGIN = "https://www.youtube.com"

/** A fixed one: the site's own page in a common browser. */
const BROWSER = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"

// The library prints what it cannot parse, which may quote a caller's text
Log.setLevel(Log.Level.NONE)
Parser.setParserErrorHandler(() => undefined)

export type Failure = InvalidInput | NotFound | UpstreamUnavailable

/** The site's reply has not the shape that the library, or this package, knows. */
export class Misread extends Data.TaggedError("Misread")<{}> {}

export const invalidReply = (reason: string) => new UpstreamUnavailable({ upstream: UPSTREAM, reason, invalidReply: true })

/** Where an error was thrown: its kind, the file and the line. Its message may quote a caller's text. */
const placeOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return ""
  const place = /([\w.-]+:\d+):\d+\)?$/mu.exec(cause.stack ?? "")?.[1]
  return place === undefined ? ` (${cause.name})` : ` (${cause.name} at ${place})`
}

const misread = (cause?: unknown) => invalidReply(`its reply is malformed, or of a new shape${placeOf(cause)}`)

/** What a request is for. `page`: it continues a list, so a refusal is that of the caller's token. */
export interface Purpose {
  readonly resource: string
  readonly page?: boolean
}

/** Headers of the library that the site wants; never cookies or credentials. */
const SENT = [
  "accept-language",
  "origin",
  "user-agent",
  "x-goog-api-format-version",
  "x-goog-visitor-id",
  "x-youtube-client-name",
  "x-youtube-client-version"
]

const Reply = Schema.Record(Schema.String, Schema.Unknown)

/** 400: the site knows no such id, or no such page. */
const refusalFor =
  ({ page = false, resource }: Purpose) =>
  ({ status }: { readonly status: number }) => {
    if (status !== 400 && !(page && status === 404)) return undefined
    return page ? unknownPage() : new NotFound({ resource })
  }

/** The session's data, made here: nothing is asked for it. */
const sessionData = Effect.promise(() =>
  Session.getSessionData(
    ...([
      "en",
      "US",
      0,
      "",
      BROWSER,
      false,
      true,
      false,
      "desktop",
      undefined,
      "UTC",
      undefined,
      undefined,
      undefined,
      false,
      undefined,
      false
    ] as const)
  )
)

/** Runs an asynchronous use of the library. `purpose` tells what a refusal of the site means. */
export type Use = <A>(purpose: Purpose, use: (site: Innertube) => Promise<A>) => Effect.Effect<Operation.Read<A>, Failure>

export interface SiteClient {
  readonly base: URL
  readonly reader: PublicReader.Reader
  readonly use: Use
}

export const make = Effect.fnUntraced(function* ({ baseUrl, ...limits }: Omit<Options, "downloadClients">) {
  const base = baseUrl ?? new URL(ORIGIN)
  const reader = yield* PublicReader.make({ ...limits, upstream: UPSTREAM, base })
  const session = yield* sessionData

  const ask = (purpose: Purpose, input: Parameters<typeof fetch>[0], init: RequestInit = {}) =>
    Effect.suspend(() => {
      // Not by `instanceof`: a host's server, such as that of Hono, may have put a Request of its own in place of Node's
      const asked = new URL(typeof input === "object" && "url" in input ? input.url : input)
      // The library has no reason to ask anybody else
      if (asked.origin !== ORIGIN || typeof init.body !== "string") return Effect.fail(misread())
      const headers = new Headers(init.headers)
      return reader.json(
        Reply,
        purpose.resource,
        refusalFor(purpose)
      )({
        url: new URL(`${asked.pathname}${asked.search}`, base),
        headers: Object.fromEntries(SENT.flatMap((name) => (headers.has(name) ? [[name, headers.get(name) ?? ""]] : []))),
        body: JSON.parse(init.body)
      })
    })

  const use: Use = (purpose, use) =>
    Effect.flatMap(Effect.context<never>(), (context) => {
      const run = Effect.runPromiseExitWith(context)
      const caches: Array<Operation.CacheResult> = []
      let failure: Failure | undefined
      return Effect.tryPromise({
        try: async (signal) => {
          const fetch: typeof globalThis.fetch = async (input, init) => {
            const exit = await run(Effect.result(ask(purpose, input, init)), { signal })
            if (Exit.isFailure(exit)) throw new Error("The call was interrupted")
            if (exit.value._tag === "Failure") {
              failure = exit.value.failure
              throw failure
            }
            caches.push(exit.value.success.cache)
            return Response.json(exit.value.success.data)
          }
          const { account_index, api_key, api_version, context, config_data } = session
          const site = new Innertube(new Session(context, api_key, api_version, account_index, config_data, undefined, undefined, fetch))
          const data = await use(site)
          return { data, cache: caches.every((cache) => cache === "hit") ? ("hit" as const) : ("miss" as const) }
        },
        // What the library throws is about the reply, unless a request failed before
        catch: (cause) => failure ?? (cause instanceof NotFound || cause instanceof InvalidInput ? cause : misread(cause))
      })
    })

  const client: SiteClient = { base, reader, use }
  return client
})
