/** A whole host for tests: the real domain on stores in memory, its own operations, a real socket, and the log it wrote. */
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from "node:http"
import { connect } from "node:net"
import {
  type ApiKey,
  AuthThrottle,
  Bin,
  CodeHost,
  Credits,
  Decisions,
  Dns,
  Grammar,
  Image,
  InvalidInput,
  KeyRing,
  Leads,
  Ledger,
  MailReader,
  MailRelay,
  ManualGateway,
  MasterKey,
  MemoryBlobStore,
  Millrace,
  NotFound,
  Operation,
  type OutgoingMail,
  type PaymentGateway,
  type Plans,
  PricePlan,
  type ProxyNode,
  ProxyNodes,
  PublicAddress,
  type RateLimitPolicy,
  Registration,
  SignIn,
  SmsReceiver,
  Speech,
  StoreCatalog,
  UpstreamNotConfigured,
  UpstreamUnavailable,
  Vault,
  Video
} from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore, type StateStore } from "@millrace/event-sourcing"
import { BundledSelectorLibrary, BundledTopicLibrary, DnsEmailValidator, SharpImageInspector } from "@millrace/upstreams"
import { Cause, Context, Deferred, Effect, Layer, Logger, Redacted, References, Schema, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { test } from "vitest"
import { Api, Http, Readiness, Server, SessionRoutes, WebHandler } from "../src/index.ts"

// upstreams

/** Text is checked by counting its capital letters: enough to tell one answer from another. */
const grammar = Layer.succeed(Grammar.GrammarChecker, {
  supports: (language) => language.startsWith("en"),
  check: ({ text }) =>
    text === "upstream down"
      ? Effect.fail(new UpstreamUnavailable({ upstream: "grammar", reason: "connect ECONNREFUSED 10.0.0.7:8081" }))
      : Effect.succeed({
          matches: [...text.matchAll(/\p{Lu}/gu)].map(({ index }) => ({
            message: "A capital",
            offset: index,
            length: 1,
            replacements: [],
            rule: "CAPITAL"
          }))
        })
})

/** What the operation `test.work` does, so that a test decides when it ends, and sees what became of it. */
export class Bench extends Context.Service<
  Bench,
  { readonly started: Array<string>; readonly interrupted: Array<string>; readonly finish: Deferred.Deferred<void> }
>()("test/Bench") {
  static readonly layer = Layer.effect(
    Bench,
    Effect.map(Deferred.make<void>(), (finish) => ({ started: [], interrupted: [], finish }))
  )
}

/** Knows nothing of 000000, and waits for 111111 to be told, as `test.work` does. */
const bins = Layer.effect(
  Bin.BinDirectory,
  Effect.map(Bench, ({ started, interrupted, finish }) => ({
    lookup: Effect.fnUntraced(function* (bin) {
      if (bin === "000000") return yield* new NotFound({ resource: "bin" })
      if (bin === "111111") {
        started.push(bin)
        yield* Effect.onInterrupt(Deferred.await(finish), () => Effect.sync(() => interrupted.push(bin)))
      }
      return { bin, scheme: "visa", type: "debit", brand: null, country: null, bank: null }
    })
  }))
)

/** A zone of two domains. */
const names = Layer.succeed(Dns.DnsResolver, {
  resolve: ({ domain, type }) => {
    if (domain !== "example.org" && domain !== "example.com") return Effect.fail(new NotFound({ resource: "domain" }))
    const records =
      type === "MX" ? [{ ttl: 60, exchange: "mail.example.org", priority: 10 }] : type === "A" ? [{ ttl: 60, ip: "192.0.2.1" }] : []
    return Effect.succeed({ domain, type, records })
  }
})

/** Pictures of one colour: none of them is looked at. */
const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M/wHwAEAQH/7yMK/gAAAABJRU5ErkJggg==", "base64")
const picture = { bytes: PNG, contentType: "image/png", width: 1, height: 1 } as const

const images = Layer.mergeAll(
  Layer.succeed(Image.ImageGenerator, {
    configured: Effect.void,
    generate: ({ samples }) => Effect.succeed(Array.from({ length: samples }, () => picture)),
    edit: () => Effect.succeed([picture])
  }),
  Layer.succeed(Image.ImageDownloader, { download: () => Effect.succeed(picture) }),
  SharpImageInspector.layer(),
  Image.Translator.unconfigured
)

const dataOf = <A>({ example, key }: { readonly key: string; readonly example?: { readonly data: A } }): A => {
  if (example === undefined) throw new Error(`${key} has no example`)
  return example.data
}

/** Public data as the document's examples have it, whatever is asked. */
const readers = Layer.mergeAll(
  Layer.sync(CodeHost.CodeHost, () => ({
    configured: Effect.void,
    user: () => Effect.succeed({ data: dataOf(CodeHost.user), cache: "miss" }),
    repository: () => Effect.succeed({ data: dataOf(CodeHost.repository), cache: "miss" }),
    search: () => Effect.succeed({ data: dataOf(CodeHost.searchRepositories), cache: "miss" }),
    activity: () => Effect.succeed({ data: dataOf(CodeHost.activity), cache: "miss" })
  })),
  Layer.sync(Leads.MapSearch, () => ({
    configured: Effect.void,
    platform: "openstreetmap",
    search: () => Effect.succeed({ data: dataOf(Leads.search).items, cache: "miss" })
  })),
  Layer.sync(StoreCatalog.StoreCatalogs, () => ({
    products: () => Effect.succeed({ data: dataOf(StoreCatalog.read).products, cache: "miss" })
  }))
)

const shown = <A>(operation: { readonly key: string; readonly example?: { readonly data: A } }) =>
  Effect.sync(() => ({ data: dataOf(operation), cache: "miss" as const }))

/** Public data of videos as the document's examples have it, whatever is asked. */
const videos = Layer.succeed(Video.VideoSite, {
  configured: Effect.void,
  video: () => shown(Video.details),
  channel: () => shown(Video.about),
  channelVideos: () => shown(Video.channelVideos),
  search: () => shown(Video.search),
  playlist: () => shown(Video.playlist),
  comments: () => shown(Video.comments),
  downloads: Effect.void,
  download: () => shown(Video.download)
})

/** Inboxes at a domain to which no mail comes. */
const mail = Millrace.inboxes({ domain: "mail.example.com" }).pipe(
  Layer.provide(MailReader.none),
  Layer.provideMerge(MemoryBlobStore.layer),
  Layer.provide(Vault.Vault.layer)
)

const VOICE = { id: "en", name: "English", language: "en", gender: null, category: "en" }

/** Speaks a text by its own bytes. A text that begins with "wait" waits to be told, as `test.work` does. */
const speech = Layer.effect(
  Speech.SpeechSynthesizer,
  Effect.map(Bench, ({ started, interrupted, finish }) => ({
    voices: Effect.succeed({ default_voice: "en", voices: [VOICE] }),
    synthesize: ({ text }) =>
      Stream.unwrap(
        Effect.gen(function* () {
          started.push(text)
          if (text.startsWith("wait")) yield* Effect.onInterrupt(Deferred.await(finish), () => Effect.sync(() => interrupted.push(text)))
          if (text.startsWith("refuse")) return Stream.fail(new InvalidInput({ field: "text", message: "cannot be said" }))
          return Stream.succeed(new TextEncoder().encode(text))
        })
      )
  }))
)

/** An operation of the host's own: one of every kind of field, and as many ways to end. */
export const work = Operation.make("test.work", {
  summary: "Do some work",
  route: {
    method: "POST",
    path: "/test/:room/work",
    params: { room: Schema.String.check(Schema.isMaxCodePoints(300)) },
    query: {
      times: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 }))),
      tag: Schema.optionalKey(Schema.Array(Schema.String))
    },
    body: {
      how: Schema.Literals(["at once", "when told", "throw", "not configured", "not now", "invalid reply", "from cache", "pages"]),
      password: Schema.optionalKey(Schema.String),
      image: Schema.optionalKey(Schema.String),
      deep: Schema.optionalKey(Schema.Unknown)
    },
    status: 201
  },
  success: Schema.Struct({ room: Schema.String, times: Schema.Int }),
  secret: ["password"],
  quantity: ({ times = 1 }) => times,
  cached: true,
  run: Effect.fnUntraced(function* ({ room, times = 1, how }) {
    const { started, interrupted, finish } = yield* Bench
    started.push(room)
    switch (how) {
      case "throw":
        throw new Error("a bug in an operation")
      case "not configured":
        return yield* new UpstreamNotConfigured({ upstream: "bench" })
      case "not now":
        return yield* new UpstreamUnavailable({ upstream: "bench", reason: "later", isolated: true, retryAfter: 90 })
      case "invalid reply":
        return yield* new UpstreamUnavailable({ upstream: "bench", reason: "at 10.0.0.7", isolated: true, invalidReply: true })
      case "from cache":
        return { data: { room, times }, cache: "hit" as const }
      case "pages":
        return { data: { room: "x".repeat(1_048_576), times } }
      case "when told":
        yield* Effect.onInterrupt(Deferred.await(finish), () => Effect.sync(() => interrupted.push(room)))
    }
    return { data: { room, times } }
  })
})

/** Priced by nobody. */
const unpriced = Operation.make("test.unpriced", {
  summary: "Never priced",
  route: { method: "GET", path: "/test/unpriced" },
  success: Schema.Struct({}),
  run: () => Effect.succeed({ data: {} })
})

/** For everybody. */
const open = Operation.make("test.open", {
  summary: "Say the same again",
  description: "Needs no key.",
  route: { method: "GET", path: "/open/:word", params: { word: Schema.String }, query: { loud: Schema.optionalKey(Schema.Boolean) } },
  success: Schema.Struct({ word: Schema.String }),
  run: ({ word, loud }) => Effect.succeed({ data: { word: loud === true ? word.toUpperCase() : word } }),
  example: { input: { word: "hello", loud: true }, data: { word: "HELLO" } },
  links: [{ operation: "test.open", parameters: { word: "/word" } }]
})

/** Public by mistake. */
const mispriced = Operation.make("test.mispriced", {
  summary: "Priced, and yet public",
  route: { method: "GET", path: "/mispriced" },
  success: Schema.Struct({}),
  run: () => Effect.succeed({ data: {} })
})

export const api = Api.make({
  ...Api.standard,
  open: Api.publicGroup([open, mispriced], { description: "What everybody may ask." }),
  test: Api.group([work, unpriced]),
  money: Api.group(
    [
      Operation.make("test.money", {
        summary: "Wants a scope that keys do not have by default",
        route: { method: "DELETE", path: "/test/money" },
        success: Schema.Struct({}),
        run: () => Effect.succeed({ data: {} })
      })
    ],
    { scope: "billing" }
  )
})

// the host

/** The only plan of the host, unless it has others. */
const PLAN: Plans.Plan = { plan: "standard", amount: 2_000, currency: "USD", credits: Credits.of(25_000_000), every: "month" }

export interface Options extends Http.Options {
  readonly rateLimit?: RateLimitPolicy
  readonly authFailures?: number
  readonly server?: Server.Options
  /** Whether plain calls are answered directly: true by default. */
  readonly direct?: boolean
  readonly drainWithin?: WebHandler.Options["drainWithin"]
  readonly jobs?: Millrace.JobOptions
  /** Instead of one that costs 20 dollars a month. */
  readonly plans?: ReadonlyArray<Plans.Plan>
  /** What takes payments, instead of an operator; null where nothing does. */
  readonly gateway?: Layer.Layer<PaymentGateway.PaymentGateway, never, EventStore.EventStore> | null
  /** Instead of the one in memory. */
  readonly events?: Layer.Layer<EventStore.EventStore>
  readonly states?: Layer.Layer<StateStore.StateStore>
  readonly signInLimits?: NonNullable<SessionRoutes.Settings["limits"]>
  /** What sends mail, instead of a list. */
  readonly relay?: Layer.Layer<MailRelay>
  /** Whether the addresses of its accounts are verified, which brings them nothing: false by default. */
  readonly verified?: boolean
  /** Where the mails of price alerts go: nowhere by default, which is no relay. */
  readonly alertMails?: Array<OutgoingMail>
}

export const PUBLIC_NUMBER = "+15005550001"
/** The number of the document's example. */
const EXAMPLE_NUMBER = "+15005550006"

/** Calls that are made of the document find a message at once, and do not wait. */
const sms = Layer.effect(
  SmsReceiver,
  Effect.map(SmsReceiver, (receiver) => ({
    ...receiver,
    wait: (wait: Parameters<typeof receiver.wait>[0], caller: Operation.Caller) =>
      wait.number === EXAMPLE_NUMBER
        ? Effect.succeed({
            ...{ id: "sms", sender: "Example", message: "482913", code: "482913", receivedAt: 0 },
            words: { texts: ["example", "482913"], number: undefined } as const
          })
        : receiver.wait(wait, caller)
  }))
).pipe(Layer.provide(SmsReceiver.layer([PUBLIC_NUMBER, EXAMPLE_NUMBER])), Layer.provide(Vault.Vault.layer))

const MASTER_KEY = "1f".repeat(32)

/** Of the operations above, in thousandths. */
const prices = Layer.effectDiscard(
  Effect.flatMap(PricePlan.PriceBook, (book) =>
    book.publish({
      "test.work": Credits.of(2_000),
      "test.money": Credits.of(0),
      "test.open": Credits.of(0),
      "test.mispriced": Credits.of(1_000)
    })
  )
)

const listing = (mails: Array<OutgoingMail>): Layer.Layer<MailRelay> =>
  Layer.succeed(MailRelay, { configured: Effect.void, send: (mail) => Effect.sync(() => void mails.push(mail)) })

const mailing = (mails: Array<OutgoingMail> | undefined): Layer.Layer<MailRelay> =>
  mails === undefined
    ? MailRelay.unconfigured
    : Layer.merge(listing(mails), Layer.succeed(PublicAddress, { url: Effect.succeed(new URL(PUBLIC_URL)), service: "Example" }))

export const services = ({
  rateLimit = { limit: 10_000, window: 60 },
  authFailures = 1_000,
  events = MemoryEventStore.layer,
  states = MemoryStateStore.layer,
  plans = [PLAN],
  gateway = ManualGateway.layer(),
  alertMails,
  verified = false,
  jobs
}: Options = {}) =>
  Layer.mergeAll(Readiness.Readiness.layer(), prices, AuthThrottle.layer({ failures: authFailures })).pipe(
    Layer.provideMerge(Millrace.sessions()),
    Layer.provideMerge(
      Millrace.layer({
        ...{ operations: api.operations, groups: api.groups, rateLimit, payments: { plans } },
        ...(verified ? { registration: { signUpCredits: Credits.of(0) } } : {}),
        ...(jobs === undefined ? {} : { jobs })
      })
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        grammar,
        BundledSelectorLibrary.layer,
        BundledTopicLibrary.layer,
        Layer.provideMerge(DnsEmailValidator.layer, names),
        images,
        readers,
        videos,
        Layer.provideMerge(Layer.merge(bins, speech), Bench.layer),
        sms,
        mail,
        ManualGateway.operators,
        mailing(alertMails),
        gateway ?? Layer.empty
      )
    ),
    Layer.provideMerge(Layer.mergeAll(events, states, Layer.orDie(MasterKey.layer(MASTER_KEY))))
  )

/** Every line of the log as a logger sees it: the message, the cause, and what it is annotated with. */
const recording = (lines: Array<string>) =>
  Logger.layer([
    Logger.make(({ logLevel, message, cause, fiber }) => {
      const annotations = fiber.getRef(References.CurrentLogAnnotations)
      lines.push(JSON.stringify({ logLevel, message, cause: Cause.pretty(cause), ...annotations }))
    })
  ])

/** A proxy node. What it carries is tested elsewhere. */
const proxyNode: ProxyNode = {
  country: "DE",
  region: "Hesse",
  host: "proxy.example.com",
  endpoints: [
    { protocol: "http", port: 8080 },
    { protocol: "https", port: 8080 },
    { protocol: "socks5", port: 1080 },
    { protocol: "socks5h", port: 1080 }
  ],
  exits: ["192.0.2.7"]
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** The body as JSON. */
  readonly json: unknown
}

export interface Call {
  readonly method?: string
  readonly headers?: OutgoingHttpHeaders
  /** An object is sent as JSON. */
  readonly body?: string | Uint8Array | object
  readonly signal?: AbortSignal
}

/** Where people reach a host with sessions, for the links in its mails. */
export const PUBLIC_URL = "https://api.example.com"

/** The routes of sign-ups and sessions, which put mails on a list. */
const sessionRoutes = ({ relay, sessions, signInLimits }: Options, mails: Array<OutgoingMail>) => {
  if (sessions !== true) return Layer.empty
  return SessionRoutes.layer({
    publicUrl: Effect.succeed(new URL(PUBLIC_URL)),
    ...(signInLimits === undefined ? {} : { limits: signInLimits })
  }).pipe(Layer.provide(SignIn.layer), Layer.provide(relay ?? listing(mails)))
}

/** The same handler, whose direct way is left out or counted. */
const handledBy = (made: WebHandler.WebHandler, isDirect: boolean, answered: { direct: number }): WebHandler.WebHandler => {
  const { app, context, direct } = made.handle
  if (app === undefined || context === undefined || direct === undefined) throw new Error("It is not a whole handler")
  const counted: WebHandler.Direct = (...of) => {
    const call = direct(...of)
    if (call !== undefined) answered.direct++
    return call
  }
  const handle: WebHandler.Handle = (request, peer) => made.handle(request, peer)
  return { ...made, handle: Object.assign(handle, { app, context }, isDirect ? { direct: counted } : {}) }
}

/** Opens a host on a port of its own. It closes with the scope. */
export const host = Effect.fnUntraced(function* (options: Options = {}) {
  const lines: Array<string> = []
  const mails: Array<OutgoingMail> = []
  const context = yield* Layer.build(Layer.provideMerge(services(options), recording(lines)))
  const run = Effect.provideContext(context)
  const answered = { direct: 0 }
  const made = yield* run(
    WebHandler.make(
      Layer.merge(Http.layer(api, options), sessionRoutes(options, mails)),
      options.drainWithin === undefined ? {} : { drainWithin: options.drainWithin }
    )
  )
  const handler = handledBy(made, options.direct !== false, answered)
  const { url, port } = yield* run(Server.listen(handler, options.server))
  yield* run(ProxyNodes.use(({ keep }) => keep("node_1", proxyNode)))

  /** An account with so many credits, and a key of it. */
  const account = (grant = 200, scopes?: ReadonlyArray<ApiKey.Scope>) =>
    run(
      Effect.gen(function* () {
        const registration = yield* Registration
        const accountId = yield* registration.open(`${crypto.randomUUID()}@example.org`)
        if (options.verified === true) yield* registration.verify(accountId)
        const keys = yield* KeyRing
        const { key } = yield* keys.issue(accountId, scopes === undefined ? {} : { scopes })
        const ledger = yield* Ledger
        const amount = Credits.of(Math.round(grant * 1000))
        yield* ledger.execute(accountId, Decisions.grant({ lotId: `lot_${accountId}`, amount, source: "promotion" }))
        return { accountId, key: Redacted.value(key), bearer: { authorization: `Bearer ${Redacted.value(key)}` } }
      })
    )

  return {
    url,
    port,
    lines,
    mails,
    handler,
    /** How many requests were answered directly. */
    answered,
    account,
    run,
    call: (path: string, call: Call = {}) => Effect.promise(() => send(`${url}${path}`, call)),
    /** Sends bytes as they are, and gives back all that comes until the server closes, or `until` is there. */
    raw: (bytes: ReadonlyArray<string | Uint8Array>, until?: RegExp) => Effect.promise(() => exchange(port, bytes, until)),
    bench: yield* run(Bench),
    balance: (accountId: string) => run(Effect.orDie(Effect.flatMap(Ledger, (ledger) => ledger.balance(accountId)))),
    /** All events, as text. */
    log: run(Effect.flatMap(EventStore.EventStore, (events) => Stream.runCollect(events.readAll(EventStore.start))))
  }
})

export type Host = Effect.Success<ReturnType<typeof host>>

export const send = (url: string, { method = "GET", headers = {}, body, signal }: Call = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const isJson = typeof body === "object" && !(body instanceof Uint8Array)
    const bytes = isJson ? JSON.stringify(body) : body
    const outgoing = request(
      url,
      {
        method,
        agent: false,
        headers: {
          ...(isJson ? { "content-type": "application/json" } : {}),
          ...(bytes === undefined ? {} : { "content-length": Buffer.byteLength(bytes) }),
          ...headers
        },
        ...(signal === undefined ? {} : { signal })
      },
      (incoming) => {
        const chunks: Array<Buffer> = []
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
        incoming.once("error", reject)
        incoming.once("end", () => {
          const text = Buffer.concat(chunks).toString()
          const isJson = incoming.headers["content-type"] === "application/json" && text !== ""
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: text, json: isJson ? JSON.parse(text) : undefined })
        })
      }
    )
    outgoing.once("error", reject)
    outgoing.end(bytes)
  })

const exchange = (port: number, bytes: ReadonlyArray<string | Uint8Array>, until?: RegExp): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ""
    const socket = connect({ port, host: "127.0.0.1" }, () => {
      for (const part of bytes) socket.write(part)
    })
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      if (until?.test(text) === true) socket.destroy()
    })
    socket.once("error", reject)
    socket.once("close", () => resolve(text))
  })

/** A test that is one effect, under a clock that stands still. */
export const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  test(name, { timeout: 120_000 }, () => Effect.runPromise(Effect.asVoid(body).pipe(Effect.scoped, Effect.provide(TestClock.layer()))))

/** Asks until the answer is the one that is waited for: it will be, or the test fails. */
export const eventually = <A>(question: Effect.Effect<A>, isIt: (answer: A) => boolean): Effect.Effect<A> =>
  Effect.gen(function* () {
    const giveUpAt = performance.now() + 10_000
    for (;;) {
      const answer = yield* question
      if (isIt(answer)) return answer
      if (performance.now() > giveUpAt) throw new Error(`It never came true: ${JSON.stringify(answer)}`)
      yield* TestClock.adjust("1 second")
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 2)))
    }
  })
