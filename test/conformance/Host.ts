/** The service as it comes, on a real socket: all of its operations on their real upstreams, of which the name server is a test's own. */
import {
  AuthThrottle,
  Checkout,
  CodeHost,
  Credits,
  DailyQuotas,
  Decisions,
  Image,
  Inbox,
  Inboxes,
  Jobs,
  KeyRing,
  Leads,
  Ledger,
  MailReceiver,
  MailRelay,
  ManualGateway,
  MasterKey,
  MemoryBlobStore,
  Millrace,
  newPaymentId,
  newReservationId,
  type Plans,
  type ProxyNode,
  ProxyNodes,
  PublicAddress,
  type RateLimitPolicy,
  Registration,
  SmsReceiver,
  Speech,
  Vault,
  Video
} from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Api, Http, Readiness, Server, WebHandler } from "@millrace/http"
import { EspeakSpeechSynthesizer } from "@millrace/upstream-espeak"
import { YoutubeiVideoSite } from "@millrace/upstream-youtubei"
import {
  BundledSelectorLibrary,
  BundledTopicLibrary,
  CardTypeBinDirectory,
  DnsClient,
  DnsEmailValidator,
  GitHubCodeHost,
  HarperGrammarChecker,
  PlacesMapSearch,
  SharpImageInspector,
  UrlImageDownloader,
  YouTubeVideoSite
} from "@millrace/upstreams"
import { MailParser } from "@millrace/upstreams/mail"
import { Context, Effect, Layer, Logger, Redacted, type Scope, Stream } from "effect"
import { test } from "vitest"
import * as SiteServer from "../../packages/upstream-youtubei/test/SiteServer.ts"
import * as GitHubServer from "../../packages/upstreams/test/codehost/GitHubServer.ts"
import * as NameServer from "../../packages/upstreams/test/dns/NameServer.ts"
import * as PlacesServer from "../../packages/upstreams/test/mapsearch/PlacesServer.ts"
import * as LocalService from "../../packages/upstreams/test/shared/LocalService.ts"
import * as ShopServer from "../../packages/upstreams/test/storecatalog/ShopServer.ts"
import * as YouTubeServer from "../../packages/upstreams/test/video/YouTubeServer.ts"
import { prose } from "./Row.ts"

const api = Api.make(Api.standard)

const RECORDS = [
  NameServer.a("192.0.2.7"),
  NameServer.aaaa("2001:db8::7"),
  NameServer.mx("mail.example.com"),
  NameServer.ns("ns.example.com"),
  NameServer.txt("v=spf1 -all"),
  NameServer.soa()
]

/** Of a name that has no other records, as it has to be. */
const ALIAS = [NameServer.cname("example.com")]

/** Whatever is asked for is there, but for what is nowhere. */
const script = (query: NameServer.Query): NameServer.Reply => {
  if (query.name === "nowhere.example.com") return NameServer.nxdomain()
  return NameServer.zone({ [query.name]: query.type === "CNAME" ? ALIAS : RECORDS })(query)
}

/** A picture of one pixel: how pictures come about is no concern of the contract. */
const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M/wHwAEAQH/7yMK/gAAAABJRU5ErkJggg==", "base64")
const picture = { bytes: PNG, contentType: "image/png", width: 1, height: 1 } as const

const images = Layer.mergeAll(
  Layer.succeed(Image.ImageGenerator, {
    configured: Effect.void,
    generate: ({ samples }) => Effect.succeed(Array.from({ length: samples }, () => picture)),
    edit: () => Effect.succeed([picture])
  }),
  Layer.succeed(Image.Translator, { configured: Effect.void, translate: Effect.succeed }),
  UrlImageDownloader.layer(),
  SharpImageInspector.layer()
)

const nobody = Layer.mergeAll(
  Image.ImageGenerator.unconfigured,
  Image.Translator.unconfigured,
  Speech.SpeechSynthesizer.unconfigured,
  UrlImageDownloader.layer(),
  SharpImageInspector.layer()
)

/** The public number, and a message that arrived there. */
const NUMBER = "+15005550006"
const SMS = { source: "host", id: "1", from: "Example", to: NUMBER, text: `482913 is your Example code. ${prose(100)}` } as const

/** A proxy node that speaks everything. What it carries is no concern of the contract. */
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
  exits: ["192.0.2.7", "192.0.2.8"]
}

const MASTER_KEY = "1f".repeat(32)
/** So often as no test calls. */
const UNLIMITED = 1_000_000

const PLAN: Plans.Plan = { plan: "standard", amount: 2_000, currency: "USD", credits: Credits.of(25_000_000), every: "month" }

export interface Options {
  readonly rateLimit?: RateLimitPolicy
  /** Whether the event store is out of reach at the moment: always there by default. */
  readonly isDown?: () => boolean
  /** Whether somebody makes pictures and speech, mail comes here, and there is a public number: by default. */
  readonly isConfigured?: boolean
  /** What the platform that hosts code answers instead. */
  readonly codeHost?: Parameters<typeof GitHubServer.answer>[0]
  /** What the platform that shows videos answers instead. */
  readonly video?: Parameters<typeof YouTubeServer.answer>[0]
  /** What its own pages and apps are answered instead, which downloads are read from. */
  readonly pages?: Parameters<typeof SiteServer.answer>[0]
  /** Whether all of it is read as they do, without the API. */
  readonly withoutApi?: boolean
  /** Whether the API alone is read. */
  readonly withoutDownloads?: boolean
}

const away = new EventStore.StoreUnavailable({ reason: "out of reach" })

/** Out of reach at times. Whoever follows the log goes on, as if he had heard before. */
const reachable = (isDown: () => boolean) =>
  Layer.effect(
    EventStore.EventStore,
    Effect.map(EventStore.EventStore, (store) => {
      const whileUp = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | EventStore.StoreUnavailable> =>
        Effect.suspend((): Effect.Effect<A, E | EventStore.StoreUnavailable> => (isDown() ? Effect.fail(away) : effect))
      return {
        ...store,
        append: (...of) => whileUp(store.append(...of)),
        lastRevision: Object.assign(
          (...of: Parameters<typeof store.lastRevision>) => whileUp(store.lastRevision(...of)),
          // Where it is out of reach, nothing is known at once
          { now: (...of: Parameters<typeof store.lastRevision>) => (isDown() ? undefined : store.lastRevision.now?.(...of)) }
        ),
        readStream: (...of) => Stream.unwrap(Effect.sync(() => (isDown() ? Stream.fail(away) : store.readStream(...of))))
      }
    })
  ).pipe(Layer.provide(MemoryEventStore.layer))

const blobs = MemoryBlobStore.layer.pipe(Layer.provide(Vault.Vault.layer))

/** Takes every mail. What it carries is no concern of the contract. */
const mailing = Layer.merge(
  Layer.succeed(MailRelay, { configured: Effect.void, send: () => Effect.void }),
  Layer.succeed(PublicAddress, { url: Effect.succeed(new URL("https://api.example.com")), service: "Example" })
)

interface Servers {
  readonly nameServer: string
  readonly codeHost: URL
  readonly shop: URL
  readonly map: URL
  readonly videoSite: URL
  readonly videoPages: URL
}

/** The API, with the quota of a project that has asked for more; and the site's own pages, for downloads alone. */
const videos = ({ videoPages, videoSite }: Servers, withoutDownloads: boolean) =>
  Layer.effect(
    Video.VideoSite,
    Effect.gen(function* () {
      const api = yield* Video.VideoSite
      const { download, downloads } = Context.get(yield* Layer.build(YoutubeiVideoSite.layer({ baseUrl: videoPages })), Video.VideoSite)
      return withoutDownloads ? api : { ...api, download, downloads }
    })
  ).pipe(
    Layer.provide(YouTubeVideoSite.layer({ baseUrl: videoSite, apiKey: Redacted.make(YouTubeServer.KEY), dailyQuota: UNLIMITED })),
    Layer.provideMerge(DailyQuotas.layer)
  )

const services = (
  servers: Servers,
  {
    isConfigured = true,
    isDown = () => false,
    rateLimit = { limit: UNLIMITED, window: 60 },
    withoutApi = false,
    withoutDownloads = false
  }: Options
) => {
  const { codeHost, map, nameServer, shop, videoPages } = servers
  const shown = withoutApi ? YoutubeiVideoSite.layer({ baseUrl: videoPages, retries: 0 }) : videos(servers, withoutDownloads)
  return Layer.mergeAll(Readiness.Readiness.layer(), AuthThrottle.layer({ failures: UNLIMITED })).pipe(
    Layer.provideMerge(
      // Accounts have what a test grants them, and nothing for their address
      Millrace.layer({ operations: api.operations, rateLimit, payments: { plans: [PLAN] }, registration: { signUpCredits: Credits.of(0) } })
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        HarperGrammarChecker.layer(),
        CardTypeBinDirectory.layer,
        BundledSelectorLibrary.layer,
        BundledTopicLibrary.layer,
        ShopServer.catalogsAt(shop, "example.com"),
        DnsEmailValidator.layer,
        Millrace.inboxes({ domain: isConfigured ? "mail.example.com" : undefined }).pipe(
          Layer.provide(MailParser.layer()),
          Layer.provide(blobs),
          Layer.provide(Vault.Vault.layer)
        ),
        isConfigured ? GitHubCodeHost.layer({ baseUrl: codeHost }) : CodeHost.CodeHost.unconfigured,
        isConfigured ? PlacesMapSearch.layer({ baseUrl: map, apiKey: Redacted.make(PlacesServer.KEY) }) : Leads.MapSearch.unconfigured,
        isConfigured ? shown : Video.VideoSite.unconfigured,
        isConfigured ? ManualGateway.layer() : Layer.empty,
        isConfigured ? mailing : MailRelay.unconfigured,
        isConfigured ? SmsReceiver.layer([NUMBER]).pipe(Layer.provide(Vault.Vault.layer)) : SmsReceiver.unconfigured,
        isConfigured ? Layer.merge(EspeakSpeechSynthesizer.layer(), images) : nobody,
        blobs
      )
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        reachable(isDown),
        MemoryStateStore.layer,
        Layer.orDie(MasterKey.layer(MASTER_KEY)),
        DnsClient.layer({ servers: [nameServer] }),
        Logger.layer([])
      )
    )
  )
}

/** A test that is one effect, over real sockets. */
export const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  test(name, { timeout: 60_000 }, () => Effect.runPromise(Effect.asVoid(Effect.scoped(body))))

/** A message of two parts: a text, and a file. */
const raw = (subject: string): Uint8Array =>
  Buffer.from(
    [
      ...["From: Grace Hopper <grace@example.org>", "To: <tester@example.com>", `Subject: ${subject}`, "MIME-Version: 1.0"],
      ...['Content-Type: multipart/mixed; boundary="part"', "", "--part", "Content-Type: text/plain; charset=utf-8", "", "Hello"],
      ...["--part", "Content-Type: text/plain", 'Content-Disposition: attachment; filename="notes.txt"'],
      ...["Content-Transfer-Encoding: base64", "", btoa("notes"), "--part--", ""]
    ].join("\r\n")
  )

const incoming = (subject: string) => ({
  queueId: crypto.randomUUID(),
  sender: "grace@example.org",
  remoteAddress: "192.0.2.1",
  raw: raw(subject),
  authentication: { spf: "pass", dkim: "none", dmarc: "none", arc: null }
})

/** The same handler without its direct way of plain calls. */
const ordinary = ({ drain, handle: { app, context } }: Effect.Success<ReturnType<typeof WebHandler.make>>): WebHandler.WebHandler => {
  const unused = () => Promise.reject(new Error("Only Node's requests are served"))
  return { drain, handle: Object.assign(unused, { app, context }) }
}

/** Serves for as long as the scope is open. */
export const hostWith = Effect.fnUntraced(function* (options: Options) {
  const { address } = yield* NameServer.serve(script)
  const { url: codeHost } = yield* LocalService.serve(GitHubServer.answer(options.codeHost))
  const { url: shop } = yield* LocalService.serve(ShopServer.answer())
  const { url: map } = yield* LocalService.serve(PlacesServer.answer())
  const { url: videoSite } = yield* LocalService.serve(YouTubeServer.answer(options.video))
  const { url: videoPages } = yield* LocalService.serve(SiteServer.answer(options.pages))
  const context = yield* Layer.build(services({ nameServer: address, codeHost, shop, map, videoSite, videoPages }, options))
  const run = Effect.provideContext(context)
  if (options.isConfigured !== false) yield* run(ProxyNodes.use(({ keep }) => keep("node_1", proxyNode)))
  if (options.isConfigured !== false) yield* run(SmsReceiver.use((receiver) => receiver.receive(SMS)))
  const handler = yield* run(WebHandler.make(Http.layer(api)))
  const { url } = yield* run(Server.listen(handler))
  const { url: ordinaryUrl } = yield* run(Server.listen(ordinary(handler)))

  /** An account with so many credits, and its key. */
  const open = Effect.fnUntraced(function* (credits: number) {
    const registration = yield* Registration
    const accountId = yield* registration.open(`${crypto.randomUUID()}@example.org`)
    yield* registration.verify(accountId)
    const keys = yield* KeyRing
    const { key } = yield* keys.issue(accountId)
    const ledger = yield* Ledger
    const amount = Credits.of(credits * 1000)
    yield* ledger.execute(accountId, Decisions.grant({ lotId: `lot_${accountId}`, amount, source: "promotion" }))
    return { accountId, key: Redacted.value(key) }
  })

  /** A new inbox of an account, and the ids of the messages of these subjects in it. */
  const inbox = Effect.fnUntraced(function* (accountId: string, subjects: ReadonlyArray<string>) {
    const [inboxes, receiver] = [yield* Inboxes, yield* MailReceiver]
    const owner = { accountId, inboxId: Inbox.idOf(yield* newReservationId) }
    yield* inboxes.create({ ...owner, lifetime: 3_600, label: null })
    const { address } = yield* inboxes.show(owner)
    for (const subject of subjects) yield* receiver.receive(address, incoming(subject))
    const { messages } = yield* inboxes.find(accountId, owner.inboxId)
    return { inboxId: owner.inboxId, address, messages: messages.map(({ messageId }) => messageId) }
  })

  /** A payment of an account that was requested. */
  const payment = Effect.fnUntraced(function* (accountId: string) {
    const checkout = yield* Checkout
    const paymentId = yield* newPaymentId
    yield* checkout.request({ paymentId, accountId, description: "10,000 credits", ...checkout.offer("10") })
    return paymentId
  })

  return {
    url,
    /** Where no call is answered directly. */
    ordinaryUrl,
    payment: (accountId: string) => run(payment(accountId)),
    inbox: (accountId: string, subjects: ReadonlyArray<string> = ["Welcome"]) => run(inbox(accountId, subjects)),
    /** Delivers a message as an SMTP server does. */
    deliver: (address: string, subject: string) =>
      run(Effect.flatMap(MailReceiver, (receiver) => receiver.receive(address, incoming(subject)))),
    open: (credits: number) => run(open(credits)),
    /** In thousandths of a credit. */
    balance: (accountId: string) => run(Effect.flatMap(Ledger, (ledger) => ledger.balance(accountId))),
    /** What becomes of a job when its retention is over. */
    purge: (jobId: string) => run(Effect.flatMap(Jobs, (jobs) => jobs.purge(jobId)))
  }
})

export const host = hostWith({})
