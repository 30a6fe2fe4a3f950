/** The server: everything in one process, for as long as it is not told to end. */
import { Config, Effect, Layer, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { AuthThrottle, Millrace, type RateLimitPolicy } from "@millrace/core"
import { Http, Readiness, Server, WebHandler } from "@millrace/http"
import * as Administration from "../Administration.ts"
import * as Demo from "../Demo.ts"
import * as Logging from "../Logging.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"
import * as Upstreams from "../Upstreams.ts"

const RateLimit = Schema.String.check(
  Schema.isPattern(/^[1-9]\d{0,8}\/[1-9]\d{0,5}$/u, { message: "expected REQUESTS/SECONDS, such as 60/60" })
)

const policyOf = (text: string): RateLimitPolicy => {
  const [limit = 0, window = 0] = text.split("/").map(Number)
  return { limit, window }
}

const flags = {
  host: Flag.String("host").pipe(
    Flag.withDescription("Address to listen on (MILLRACE_HOST, else 127.0.0.1)"),
    Flag.withFallbackConfig(Config.String("MILLRACE_HOST")),
    Flag.withDefault("127.0.0.1")
  ),
  port: Flag.Int("port").pipe(
    Flag.withDescription("Port to listen on, 0 for any that is free (MILLRACE_PORT, else 8787)"),
    Flag.withFallbackConfig(Config.Int("MILLRACE_PORT")),
    Flag.withDefault(8787),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 65_535 })))
  ),
  store: Flag.String("store").pipe(
    Flag.withDescription(`Where everything is kept: sqlite:PATH, made if it is not there, or memory: (MILLRACE_STORE, else ${StoreUrl.DEFAULT})`),
    Flag.withFallbackConfig(Config.String("MILLRACE_STORE")),
    Flag.withDefault(StoreUrl.DEFAULT)
  ),
  rateLimit: Flag.String("rate-limit").pipe(
    Flag.withDescription("Requests / seconds for each account (MILLRACE_RATE_LIMIT, else 60/60)"),
    Flag.withFallbackConfig(Config.String("MILLRACE_RATE_LIMIT")),
    Flag.withDefault("60/60"),
    Flag.withSchema(RateLimit)
  ),
  late: Flag.Literals("late", ["withhold", "charge"]).pipe(
    Flag.withDescription("A success that comes after its hold has ended: withhold the result, or charge it anew (MILLRACE_LATE, else withhold)"),
    Flag.withFallbackConfig(Config.Literals(["withhold", "charge"], "MILLRACE_LATE")),
    Flag.withDefault("withhold")
  ),
  binFile: Flag.String("bin-file").pipe(
    Flag.withDescription("CSV of BIN ranges: bin,scheme,type,brand,country,bank (MILLRACE_BIN_FILE)"),
    Flag.withFallbackConfig(Config.String("MILLRACE_BIN_FILE")),
    Flag.optional
  ),
  logLevel: Flag.Literals("log-level", Logging.levels).pipe(
    Flag.withDescription("What is told on stderr (MILLRACE_LOG_LEVEL, else Info; Warn on a terminal)"),
    Flag.withFallbackConfig(Config.Literals(Logging.levels, "MILLRACE_LOG_LEVEL")),
    Flag.optional
  ),
  demo: Flag.Boolean("demo").pipe(
    Flag.withDescription("Open a demo account of 200 credits and print a key and three calls to paste"),
    Flag.withDefault(false)
  ),
  json: Output.json
}

export const serve = Command.make("serve", flags, ({ host, port, store, rateLimit, late, binFile, logLevel, demo, json }) => {
  const forPeople = Output.isForPeople(json)
  const logging = Logging.layer(Option.getOrElse(logLevel, () => (forPeople ? "Warn" : "Info")))
  const stores = Layer.unwrap(Effect.map(Administration.masterKey, (masterKey) => StoreUrl.layer({ url: store, masterKey, mode: "create" })))
  const millrace = Millrace.layer({ operations: Upstreams.operations, rateLimit: policyOf(rateLimit), late }).pipe(
    Layer.provideMerge(Upstreams.layer({ binFile: Option.getOrUndefined(binFile) })),
    Layer.provideMerge(stores)
  )
  const handler = WebHandler.make(Http.layer(Upstreams.api))
  const server = Server.Server.layer(handler, { host, port }).pipe(
    Layer.provide(Layer.mergeAll(Readiness.Readiness.layer(), AuthThrottle.layer())),
    Layer.provideMerge(millrace)
  )
  return Effect.gen(function* () {
    const { url } = yield* Server.Server
    const account = demo ? yield* Demo.open : undefined
    yield* Output.line(forPeople ? `Listening on ${url}` : JSON.stringify({ listening: url }))
    if (account !== undefined) yield* Output.line(Demo.invitation(url, account))
    return yield* Effect.never
  }).pipe(Effect.provide(server), Effect.provide(logging))
}).pipe(
  Command.withDescription("Serve the API over HTTP, until SIGTERM or SIGINT; running calls end first. MILLRACE_MASTER_KEY: the key to what is sealed, else a file master.key beside the database"),
  Command.withExamples([
    { command: "millrace serve --demo", description: "On 127.0.0.1:8787, kept in ./data, with an account to try" },
    { command: "millrace serve --store memory: --port 0 --demo", description: "Keeps nothing, on any free port" },
    { command: "MILLRACE_RATE_LIMIT=600/60 millrace serve --store sqlite:/var/lib/millrace/millrace.db", description: "Settings by environment" }
  ])
)
