/** `serve`: the whole server in one process, until a signal ends it. */
import * as Console from "@millrace/console"
import { AuthThrottle, Millrace, Money, type RateLimitPolicy, SignIn, Vault } from "@millrace/core"
import { EventStore } from "@millrace/event-sourcing"
import { Http, Metrics, Server, SessionRoutes, WebHandler } from "@millrace/http"
import { DnsClient } from "@millrace/upstreams"
import { Duration, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Blobs from "../Blobs.ts"
import * as ClusterSettings from "../ClusterSettings.ts"
import * as CouponSettings from "../CouponSettings.ts"
import * as Demo from "../Demo.ts"
import * as Logging from "../Logging.ts"
import * as MailRelaySettings from "../MailRelaySettings.ts"
import * as MailSettings from "../MailSettings.ts"
import * as MoneySetting from "../MoneySetting.ts"
import * as OperatorKey from "../OperatorKey.ts"
import * as Output from "../Output.ts"
import * as OperatorView from "../operator/OperatorView.ts"
import * as PaymentSettings from "../PaymentSettings.ts"
import * as ProcessMetrics from "../ProcessMetrics.ts"
import * as Progress from "../Progress.ts"
import * as Providers from "../Providers.ts"
import * as ProxySettings from "../ProxySettings.ts"
import * as PublicUrl from "../PublicUrl.ts"
import * as ReadinessChecks from "../ReadinessChecks.ts"
import * as Setting from "../Setting.ts"
import * as Signals from "../Signals.ts"
import * as SignInHome from "../SignInHome.ts"
import * as SmsSettings from "../SmsSettings.ts"
import * as StoreUrl from "../StoreUrl.ts"
import * as Telemetry from "../Telemetry.ts"
import * as Upstreams from "../Upstreams.ts"
import * as WebhookSettings from "../WebhookSettings.ts"

const REQUESTS_PER_SECONDS = /^(?<limit>[1-9]\d{0,8})\/(?<window>[1-9]\d{0,5})$/u

const policyOf = (text: string): RateLimitPolicy | undefined => {
  const { limit, window } = REQUESTS_PER_SECONDS.exec(text)?.groups ?? {}
  return limit === undefined || window === undefined ? undefined : { limit: Number(limit), window: Number(window) }
}

/** Scheme, host and port, written as browsers do. */
const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text

const flags = {
  host: Setting.make("host", "Address to listen on", Setting.address, "127.0.0.1"),
  port: Setting.make("port", "Port to listen on, 0 for any that is free", Setting.port, "8787"),
  metricsPort: Setting.optional("metrics-port", "Port for Prometheus metrics, at /metrics; none when left out", Setting.port),
  metricsHost: Setting.make("metrics-host", "Address for the metrics. Anyone who can reach it can read them", Setting.address, "127.0.0.1"),
  store: Administration.storeBy("The store: sqlite:PATH (made if it is missing), postgres:URL, kurrentdb:URL with --state, or memory:"),
  ...ClusterSettings.flags,
  rateLimit: Setting.make(
    "rate-limit",
    "Requests in so many seconds, for each account",
    { metavar: "requests/seconds", parse: policyOf, expected: "REQUESTS/SECONDS such as 60/60" },
    "60/60"
  ),
  late: Setting.make(
    "late",
    "A call that succeeds after its hold has ended: withhold the result, or charge it again",
    { metavar: "withhold|charge", parse: Setting.oneOf(["withhold", "charge"]), expected: "withhold or charge" },
    "withhold"
  ),
  jobs: Setting.make(
    "jobs",
    "Jobs that this process runs at once. With 0 it only accepts jobs, and other processes on the store run them",
    Setting.whole("number", "a number", 0, 10_000),
    "16"
  ),
  jobLease: Setting.make(
    "job-lease",
    "Seconds after which another process takes over the jobs of one that died; the same at all hosts",
    Setting.whole("seconds", "seconds", 5, 3_600),
    "30"
  ),
  jobDocuments: Setting.optional(
    "job-documents",
    "Where small inputs and results of jobs are stored, encrypted. When left out: in events on a store in files, else in the state. Choose events on another store only once all processes on it can read them there",
    { metavar: "state|events", parse: Setting.oneOf(["state", "events"]), expected: "state or events" }
  ),
  jobRetention: Setting.optional(
    "job-retention",
    "Hours for which an ended job, its result and its files are kept; 24 when left out",
    Setting.whole("hours", "hours", 1, 87_600)
  ),
  binFile: Setting.optional("bin-file", "CSV of BIN ranges: bin,scheme,type,brand,country,bank", Setting.file),
  dnsServers: Setting.optional("dns-servers", "Name servers for lookups, separated by commas; those of the system when left out", {
    metavar: "addresses",
    parse: Setting.list(DnsClient.isServer),
    expected: "IP addresses such as 192.0.2.1 or [2001:db8::1]:5353, separated by commas"
  }),
  ...Providers.flags,
  ...MailSettings.flags,
  ...MailRelaySettings.flags,
  ...PublicUrl.flags,
  ...SignInHome.flags,
  ...SmsSettings.flags,
  ...ProxySettings.flags,
  ...PaymentSettings.flags,
  ...CouponSettings.flags,
  ...OperatorKey.flags,
  blobs: Blobs.blobs,
  webhooks: WebhookSettings.deliver,
  webhookPrivate: WebhookSettings.allowPrivate,
  ...MoneySetting.flags,
  corsOrigins: Setting.optional(
    "cors-origins",
    "Origins of web pages that may call from a browser, separated by commas; none when left out",
    { metavar: "origins", parse: Setting.list(isOrigin), expected: "origins such as https://app.example.com, separated by commas" }
  ),
  logLevel: Setting.optional("log-level", `Log level on stderr: ${Logging.levels.join(", ")}; info, or warn on a terminal, when left out`, {
    metavar: "level",
    parse: Setting.oneOf(Logging.levels),
    expected: Logging.levels.join(", ")
  }),
  webTool: Setting.make(
    "web-tool",
    "The web tool at /: balance, calls, jobs and inboxes of an account in a browser",
    { metavar: "on|off", parse: Setting.oneOf(["on", "off"]), expected: "on or off" },
    "on"
  ),
  demo: Flag.Boolean("demo").pipe(
    Flag.withDescription("Open a demo account of 200 credits and print a key and three calls to paste"),
    Flag.withDefault(false)
  ),
  json: Output.json
}

type Settings = Command.Command.Config.Infer<typeof flags>

/** The domain, its upstreams and its stores. */
const domainLayer = (settings: Settings) => {
  const {
    binFile,
    blobs,
    codeHost,
    dnsServers,
    mapSearch,
    mapSearchContact,
    overpass,
    images,
    jobDocuments,
    jobLease,
    jobRetention,
    jobs,
    late,
    rateLimit,
    speech,
    store,
    translate,
    video,
    youtubeQuota,
    youtubeUrl
  } = settings
  const { operations, groups } = Upstreams.api
  const alone = Millrace.layer({
    operations,
    groups,
    rateLimit,
    late,
    payments: PaymentSettings.terms(settings),
    coupons: settings.couponAcceptance,
    expiryNotice: "7 days",
    jobs: {
      ...(jobs === 0 ? { runner: false } : { concurrency: jobs }),
      documents: Option.getOrElse(jobDocuments, () => StoreUrl.documentsOf(store)),
      lease: Duration.seconds(jobLease),
      ...Option.match(jobRetention, { onNone: () => ({}), onSome: (hours) => ({ retention: Duration.hours(hours) }) })
    }
  })
  const calls = Layer.provideMerge(ClusterSettings.leading(operations, settings), alone)
  const webhooks = WebhookSettings.serving({ deliver: settings.webhooks === "on", allowPrivate: settings.webhookPrivate === "yes" })
  return Layer.merge(webhooks, Millrace.sessions()).pipe(
    Layer.provideMerge(calls),
    Layer.provideMerge(
      Upstreams.layer(
        {
          binFile: Option.getOrUndefined(binFile),
          dnsServers: Option.getOrUndefined(dnsServers),
          providers: { speech, images, translate, codeHost, mapSearch, overpass, mapSearchContact, video, youtubeUrl, youtubeQuota },
          mail: { smtp: settings.smtp, mailDomain: settings.mailDomain, smtpTls: settings.smtpTls }
        },
        SmsSettings.receiver(settings)
      )
    ),
    Layer.provideMerge(PaymentSettings.taking(settings)),
    Layer.provideMerge(MailRelaySettings.layer(settings, Output.isForPeople(settings.json))),
    Layer.provideMerge(Layer.provideMerge(PublicUrl.address, PublicUrl.PublicUrl.layer(settings))),
    Layer.provideMerge(Vault.Vault.layer),
    Layer.provideMerge(Blobs.layer(store, blobs)),
    Layer.provideMerge(Layer.effect(EventStore.EventStore, Progress.rebuilding("Rebuilding"))),
    Layer.provideMerge(StoreUrl.layer({ url: store, mode: "create" }))
  )
}

/** The metrics' own port stays open until every call has ended. */
const metricsLayer = ({ metricsHost: host, metricsPort }: Settings) =>
  Option.match(metricsPort, {
    onNone: () => Layer.empty,
    onSome: (port) => Layer.merge(Metrics.MetricsServer.layer({ host, port }), ProcessMetrics.layer)
  })

/** Sign-ups and sessions. They are there without a mail relay, too: a person may have a session by another proof. */
const sessionRoutes = ({ home, webTool }: Settings) =>
  Layer.unwrap(
    Effect.map(PublicUrl.PublicUrl, ({ url: publicUrl }) =>
      SessionRoutes.layer({ publicUrl, home: Option.getOrElse(home, () => (webTool === "on" ? "/" : false)) })
    )
  )

const serverLayer = (settings: Settings) => {
  const { corsOrigins, host, port } = settings
  const cors = Option.match(corsOrigins, { onNone: () => ({}), onSome: (origins) => ({ cors: { origins } }) })
  const hooked = [...SmsSettings.hooked(settings), ...PaymentSettings.hooked(settings)]
  const api = (operator: boolean) => Http.layer(Upstreams.api, { ...cors, hooks: hooked, sessions: true, operator })
  const operated = Layer.unwrap(
    Effect.map(OperatorKey.of(settings), (key) => (Option.isSome(key) ? Layer.merge(api(true), OperatorView.layer(key.value)) : api(false)))
  )
  const hooks = Layer.mergeAll(SmsSettings.hooks(settings), PaymentSettings.hooks(settings))
  const routes = Layer.mergeAll(operated, hooks, sessionRoutes(settings), settings.webTool === "on" ? Console.layer() : Layer.empty)
  const server = Server.Server.layer(WebHandler.make(routes), { host, port })
  return Layer.mergeAll(server, ProxySettings.isOn(settings) ? ProxySettings.serving(settings) : Layer.empty).pipe(
    Layer.provide(Layer.mergeAll(ReadinessChecks.layer, AuthThrottle.layer(), SignIn.layer)),
    Layer.provide(ProxySettings.Trouble.layer),
    Layer.provideMerge(domainLayer(settings)),
    Layer.provideMerge(metricsLayer(settings))
  )
}

const said = (what: string, where: Option.Option<string>): string => (Option.isSome(where) ? `, ${what} on ${where.value}` : "")

/** Prints where the server listens, and with `--demo` a key to try. */
const announce = Effect.fnUntraced(function* (demo: boolean, forPeople: boolean) {
  const { url } = yield* Server.Server
  yield* PublicUrl.PublicUrl.use(({ listening }) => listening(url))
  const metrics = Option.map(yield* Effect.serviceOption(Metrics.MetricsServer), ({ url }) => `${url}${Metrics.PATH}`)
  const smtp = Option.map(yield* Effect.serviceOption(MailSettings.SmtpListening), ({ host, port }) => `${host}:${port}`)
  const proxy = yield* Effect.serviceOption(ProxySettings.Serving)
  const account = demo ? yield* Demo.open : undefined
  const announcement = forPeople
    ? `Listening on ${url}${said("metrics", metrics)}${said("mail", smtp)}${said("proxies", Option.map(proxy, ProxySettings.announced))}`
    : JSON.stringify({
        listening: url,
        ...(Option.isSome(metrics) && { metrics: metrics.value }),
        ...(Option.isSome(smtp) && { smtp: smtp.value }),
        ...(Option.isSome(proxy) && { proxy: proxy.value })
      })
  // The server continues when its output is closed
  yield* Effect.ignore(Output.line(account === undefined ? announcement : `${announcement}\n${Demo.invitation(url, account)}`))
})

export const serve = Command.make("serve", flags, (settings) => {
  const forPeople = Output.isForPeople(settings.json)
  const level = Option.getOrElse(settings.logLevel, () => (forPeople ? "warn" : "info"))
  return Effect.andThen(announce(settings.demo, forPeople), Effect.never).pipe(
    Effect.provide(serverLayer(settings)),
    Effect.provideService(Money.Current, MoneySetting.of(settings)),
    Effect.provide(Telemetry.layer),
    Effect.provide(Logging.layer(level)),
    Signals.endsBySignal
  )
}).pipe(
  Command.withShortDescription("Serve the API over HTTP, until SIGTERM or SIGINT; running calls end first"),
  Command.withDescription(
    "Serve the API over HTTP, until SIGTERM or SIGINT; running calls end first. Each setting is taken from its flag, else from the environment variable in its description. MILLRACE_MASTER_KEY has no flag: 64 hexadecimal digits, the key to everything that is sealed. Without it, a file master.key beside the database is used, and made with a new store; PostgreSQL and KurrentDB need the variable. Traces, metrics and logs go to an OpenTelemetry collector where OTEL_EXPORTER_OTLP_ENDPOINT names one"
  ),
  Administration.withExamples({
    "millrace serve --demo": "Serve on 127.0.0.1:8787, with a store in ./data and a demo account",
    "millrace serve --store memory: --port 0 --demo": "Keep the store in memory, and listen on any free port",
    "millrace serve --store kurrentdb://node1,node2,node3 --state postgres://millrace@db/millrace":
      "Run one of several hosts that share a log",
    "MILLRACE_RATE_LIMIT=600/60 millrace serve --store sqlite:/var/lib/millrace/millrace.db": "Take a setting from the environment"
  })
)
