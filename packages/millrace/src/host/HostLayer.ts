/** The layers of a host that uses promises, made of its options. */
import {
  AuthThrottle,
  type BlobStore,
  type Charge,
  type Checkout,
  type CircuitBreaker,
  type Operation as Core,
  type Jobs,
  type ManualGateway,
  MasterKey,
  Millrace,
  Money,
  type ProxySessions,
  type RateLimit,
  type Recovery,
  Vault,
  type Webhooks
} from "@millrace/core"
import type { EventStore, StateStore } from "@millrace/event-sourcing"
import { KurrentDbEventStore } from "@millrace/event-store-kurrentdb"
import { Api, type Readiness } from "@millrace/http"
import { ConfigProvider, Duration, Effect, Layer, Option, Redacted, Struct } from "effect"
import * as Blobs from "../Blobs.ts"
import * as ClusterSettings from "../ClusterSettings.ts"
import { type CommandFailed, fail } from "../Failure.ts"
import * as Logging from "../Logging.ts"
import * as MasterKeyFile from "../MasterKeyFile.ts"
import * as PaymentSettings from "../PaymentSettings.ts"
import * as ProxySettings from "../ProxySettings.ts"
import * as ReadinessChecks from "../ReadinessChecks.ts"
import * as SettingNames from "../SettingNames.ts"
import * as SmsSettings from "../SmsSettings.ts"
import * as StateUrl from "../StateUrl.ts"
import * as StoreUrl from "../StoreUrl.ts"
import * as WebhookSettings from "../WebhookSettings.ts"
import { Mistake } from "./Given.ts"
import * as Incoming from "./Incoming.ts"
import type { AnyOperation, AnyOptions, Log, MoneyOptions, Settings } from "./Options.ts"
import * as PaymentOptions from "./PaymentOptions.ts"
import { amountOf } from "./Run.ts"
import * as SignInOptions from "./SignInOptions.ts"
import { chosen } from "./Standard.ts"

// the API

/** The groups of a host's API: its own operations by area, and the standard ones by their own groups. */
export const apiOf = ({ api, operations = [], standard = [] }: AnyOptions): Api.Api<Api.Groups> => {
  const groups: Record<string, Api.Groups[string]> = { ...chosen(standard) }
  for (const [area, own] of Map.groupBy(operations.flatMap(servedOf), ({ key }) => key.split(".", 1)[0] ?? key)) {
    const there = groups[area]
    const joins = there?.scope === "operations"
    // A group has one scope: own operations do not join those that need another scope, or no key
    const name = there === undefined || joins ? area : `${area}-own`
    groups[name] = Api.group(
      [...(joins ? there.operations : []), ...own] as never,
      joins && there.description ? { description: there.description } : {}
    )
  }
  return Api.make(groups, api)
}

/** An operation, and for a job those that read, cancel and download it. */
const servedOf = (operation: AnyOperation): ReadonlyArray<Core.Any> =>
  operation._tag === "Job" ? [operation.core, ...Object.values(operation.companions)] : [operation.core]

// the layers

/** The services that promises and routes of a host use. */
export type Services =
  | AuthThrottle
  | Charge.Charge
  | CircuitBreaker
  | Checkout
  | EventStore.EventStore
  | Jobs
  | ManualGateway.ManualPayments
  | Millrace.Administration
  | ProxySessions
  | RateLimit
  | Readiness.Readiness
  | Recovery
  | StateStore.StateStore
  | Webhooks.Webhooks

/** How long before its expiry it is told that a lot will expire. */
const EXPIRY_NOTICE = "7 days"

/** Everything that a host runs. The types of the options check that the services are there which its own operations need. */
export const layerOf = (options: AnyOptions, { groups, operations }: Api.Api<Api.Groups>): Layer.Layer<Services, unknown> => {
  const { blobs, log, money, signIn, store, webhooks } = options
  const files: Layer.Layer<BlobStore.BlobStore, unknown, Vault.Vault | StoreUrl.Stores> =
    typeof blobs === "object" ? blobs : Blobs.layer(urlOf(store), Option.fromUndefinedOr(blobs))
  const served = operations as ReadonlyArray<Core.Any<never, BlobStore.BlobStore>>
  const alone = Millrace.layer({
    operations: served,
    groups,
    expiryNotice: EXPIRY_NOTICE,
    ...domainOptions(options)
  })
  const calls = Layer.provideMerge(ClusterSettings.leading(served, Incoming.clusterSettings(options.cluster)), alone)
  const domain = Layer.merge(WebhookSettings.serving(webhooks), SignInOptions.layerOf(signIn)).pipe(
    Layer.provideMerge(calls),
    Layer.provideMerge(upstreamLayer(options)),
    Layer.provideMerge(gatewayLayer(options)),
    Layer.provideMerge(SignInOptions.mailing(signIn, options.api?.title)),
    Layer.provideMerge(files),
    Layer.provideMerge(Vault.Vault.layer),
    Layer.provideMerge(storeLayer(options)),
    Layer.provideMerge(Layer.succeed(SettingNames.Current, SettingNames.OPTIONS)),
    Layer.provideMerge(settingsLayer(options))
  )
  const node = Incoming.proxySettings(options.proxy)
  return Layer.mergeAll(
    ReadinessChecks.layer,
    AuthThrottle.layer(),
    ProxySettings.isOn(node) ? ProxySettings.serving(node) : Layer.empty
  ).pipe(
    Layer.provide(ProxySettings.Trouble.layer),
    Layer.provideMerge(domain),
    Layer.provideMerge(Layer.succeed(Money.Current, moneyOf(money))),
    Layer.provideMerge(logLayer(log))
  )
}

const domainOptions = ({
  breaker,
  coupons,
  jobDocuments,
  jobLease,
  jobRetention,
  jobs,
  late,
  payments,
  proxy,
  rateLimit,
  signUpCredits,
  store,
  trial
}: AnyOptions) => ({
  ...(proxy && { proxies: Struct.pick(proxy, ["lifetime", "byteLimit", "connectionLimit"]) }),
  payments: PaymentSettings.terms(PaymentOptions.settingsOf(payments)),
  ...(coupons && { coupons }),
  ...(rateLimit && { rateLimit }),
  ...(breaker && { breaker }),
  ...(late && { late }),
  ...(trial === undefined ? {} : { trial }),
  ...(signUpCredits === undefined ? {} : { registration: { signUpCredits: amountOf(signUpCredits, "signUpCredits") } }),
  jobs: {
    ...(jobs === 0 ? { runner: false } : jobs === undefined ? {} : { concurrency: jobs }),
    documents: jobDocuments ?? StoreUrl.documentsOf(typeof store === "string" ? store : StoreUrl.GIVEN),
    ...(jobLease === undefined ? {} : { lease: Duration.seconds(jobLease) }),
    ...(jobRetention === undefined ? {} : { retention: Duration.hours(jobRetention) })
  }
})

/**
 * The upstreams of standard operations, and the services of the host, which go before them. The package of the upstreams is loaded only for
 * a host that serves standard operations, or receives mail or text messages.
 */
const upstreamLayer = ({
  mail,
  providers = {},
  services = Layer.empty,
  sms,
  standard
}: AnyOptions): Layer.Layer<never, unknown, BlobStore.BlobStore | StoreUrl.Stores | Vault.Vault> => {
  if ((standard ?? mail ?? sms) === undefined) return services
  const upstreams = Effect.gen(function* () {
    const { choiceOf, layer } = yield* Effect.promise(async () => {
      const [{ layer }, { choiceOf }] = await Promise.all([import("../Upstreams.ts"), import("../Providers.ts")])
      return { choiceOf, layer }
    })
    const { binFile, dnsServers } = providers
    return layer(
      { binFile, dnsServers, providers: yield* choiceOf(providers), mail: Incoming.mailSettings(mail) },
      SmsSettings.receiver(Incoming.smsSettings(sms))
    )
  })
  return Layer.mergeAll(Layer.unwrap(upstreams), services)
}

/** What takes payments. Of a gateway of the host's own, only operators of manual payments are added. */
const gatewayLayer = ({ payments }: AnyOptions) => {
  const taking = PaymentSettings.taking(PaymentOptions.settingsOf(payments))
  return typeof payments?.gateway === "object" ? Layer.merge(taking, payments.gateway) : taking
}

/** The store's address. A store that is given as a layer has none. */
export const urlOf = (store: AnyOptions["store"]): string => (typeof store === "string" ? store : StoreUrl.GIVEN)

const storeLayer = ({ state, store }: AnyOptions): Layer.Layer<StoreUrl.Stores, unknown> => {
  if (typeof store === "string" && typeof state !== "object")
    return StoreUrl.layer({ url: store, mode: "create" }).pipe(Layer.provide(Layer.succeed(StateUrl.State, Option.fromUndefinedOr(state))))
  // The types of the options say that the state is in one of the two
  const given = typeof state === "object" ? state : (Layer.empty as Layer.Layer<StateStore.StateStore>)
  return Layer.mergeAll(
    typeof store === "string" ? logOf(store) : store,
    given,
    Layer.unwrap(Effect.map(givenKey, (key) => MasterKey.layer(key)))
  )
}

/** The log alone, for a state that is a layer. */
const logOf = (url: string): Layer.Layer<EventStore.EventStore, unknown> =>
  StoreUrl.isKurrentDb(url)
    ? KurrentDbEventStore.layer({ connection: url })
    : Layer.unwrap<EventStore.EventStore, never, never, CommandFailed, never>(
        fail("the option state is for a log on KurrentDB: this store keeps its state itself")
      )

const givenKey = Effect.flatMap(MasterKeyFile.byEnvironment, (key) =>
  key === undefined ? fail("stores that are layers need the option masterKey or MILLRACE_MASTER_KEY") : Effect.succeed(key)
)

// settings

/** The options that are settings of the command line too. They go before those of the environment. */
const settingsLayer = ({ masterKey, providers = {} }: Settings) => {
  const { codeHostToken, imagesKey, mapSearchKey, speechKey, translateKey, youtubeKey } = providers
  const layer = (key: string | undefined) => {
    const given = Object.entries({
      MILLRACE_MASTER_KEY: key,
      MILLRACE_IMAGES_KEY: imagesKey,
      MILLRACE_SPEECH_KEY: speechKey,
      MILLRACE_TRANSLATE_KEY: translateKey,
      MILLRACE_CODE_HOST_TOKEN: codeHostToken,
      MILLRACE_MAP_SEARCH_KEY: mapSearchKey,
      MILLRACE_YOUTUBE_KEY: youtubeKey
    }).filter(([, value]) => value !== undefined)
    return ConfigProvider.layer(ConfigProvider.orElse(ConfigProvider.fromUnknown(Object.fromEntries(given)), ConfigProvider.fromEnv()))
  }
  if (typeof masterKey !== "object") return layer(masterKey)
  return Layer.unwrap(Effect.map(MasterKey, (key) => layer(Buffer.from(Redacted.value(key)).toString("hex")))).pipe(
    Layer.provide(masterKey)
  )
}

/** The host's money. Throws a sentence if a name or the value cannot be used. */
export const moneyOf = ({ credit = "credit", credits = `${credit}s`, value = "0.001 USD" }: MoneyOptions = {}): Money.Money => {
  const name = Money.parseName(`${credit}/${credits}`)
  if (name === undefined)
    throw new Mistake(`money.credit is ${JSON.stringify(credit)} and money.credits ${JSON.stringify(credits)}: give two words`)
  const worth = Money.parse(value)
  if (worth === undefined)
    throw new Mistake(`money.value is ${JSON.stringify(value)}: give a decimal above 0 and a currency, such as "0.002 EUR"`)
  return { ...name, ...worth }
}

const TO_CONSOLE: Log = { warn: (...line) => console.warn(...line), error: (...line) => console.error(...line) }

const logLayer = (log: Log = TO_CONSOLE) =>
  Logging.forwarding(log.debug === undefined ? "info" : "debug", (level, text, { details = [], ...fields }) => {
    const write = level === "fatal" ? log.error : level === "trace" ? log.debug : log[level]
    write?.call(log, text, Object.assign(fields, ...(details as ReadonlyArray<object>)))
  })
