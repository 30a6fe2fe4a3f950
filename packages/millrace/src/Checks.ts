import { Millrace, type Operation, type UpstreamNotConfigured, Vault } from "@millrace/core"
import { DnsClient } from "@millrace/upstreams"
import { Clock, Config, ConfigProvider, Effect, Layer, Option } from "effect"
import * as BackupFolder from "./BackupFolder.ts"
import * as Blobs from "./Blobs.ts"
import { type Check, check, finding } from "./Check.ts"
import * as ClusterChecks from "./ClusterChecks.ts"
import * as CustomerChecks from "./CustomerChecks.ts"
import { set } from "./EnvironmentSettings.ts"
import { fail } from "./Failure.ts"
import * as MailSettings from "./MailSettings.ts"
import * as PaymentSettings from "./PaymentSettings.ts"
import * as PlanSettings from "./PlanSettings.ts"
import * as ProviderNeeds from "./ProviderNeeds.ts"
import * as Providers from "./Providers.ts"
import * as ServingChecks from "./ServingChecks.ts"
import * as Setting from "./Setting.ts"
import * as SmsSettings from "./SmsSettings.ts"
import type * as StateUrl from "./StateUrl.ts"
import * as StoreChecks from "./StoreChecks.ts"
import * as StoreUrl from "./StoreUrl.ts"
import * as Upstreams from "./Upstreams.ts"

// the host

const node = check(
  "node",
  Effect.sync(() => ({ ok: true, detail: process.version }))
)

const PREFIX = "MILLRACE"

/** The names of settings only: some values are secrets. */
const settings = check(
  "settings",
  Effect.gen(function* () {
    const provider = yield* ConfigProvider.ConfigProvider
    const names: Array<string> = []
    const walk = (path: ReadonlyArray<string>): Effect.Effect<void, ConfigProvider.SourceError> =>
      Effect.gen(function* () {
        const found = yield* provider.load(path)
        if (found?._tag !== "Array" && found?.value !== undefined) names.push(path.join("_"))
        if (found?._tag === "Record") for (const key of found.keys) yield* walk([...path, key])
      })
    yield* walk([PREFIX])
    return { ok: true, detail: names.length === 0 ? "none by environment" : `by environment: ${names.sort().join(", ")}` }
  })
)

type Services = Operation.Services<(typeof Upstreams.api.operations)[number]>

/** The operation as a list of one, if its provider is missing. */
const missingOf = ({
  configured,
  key
}: {
  readonly key: string
  readonly configured: Effect.Effect<void, UpstreamNotConfigured, Services>
}) => Effect.match(configured, { onSuccess: () => [], onFailure: ({ upstream }) => [{ key, upstream }] })

/** What takes payments, and the plans, by the environment. What is wrong there is told by checks of its own, and counts as missing here. */
const selling = Effect.gen(function* () {
  const readable = <A>(variable: string, kind: Setting.Kind<A>) => Effect.orElseSucceed(set(variable, kind), Option.none<A>)
  const given = {
    ...PaymentSettings.NONE,
    payments: yield* readable("MILLRACE_PAYMENTS", PaymentSettings.gateway),
    plans: yield* readable("MILLRACE_PLANS", PlanSettings.plans)
  }
  const gateway = PaymentSettings.taking(given).pipe(Layer.catchCause(() => PaymentSettings.taking(PaymentSettings.NONE)))
  return { terms: PaymentSettings.terms(given), gateway }
})

/** Counts the operations with a provider, in a server in memory with the same settings. Others answer 503 and are free. */
const upstreams = check(
  "upstreams",
  Effect.gen(function* () {
    const binFile = Option.getOrUndefined(yield* Config.String("MILLRACE_BIN_FILE").pipe(Config.option))
    const servers = Option.getOrUndefined(yield* Config.String("MILLRACE_DNS_SERVERS").pipe(Config.option))
    const dnsServers = servers === undefined ? undefined : Setting.list(DnsClient.isServer)(servers)
    if (servers !== undefined && dnsServers === undefined)
      return yield* fail(`MILLRACE_DNS_SERVERS must list IP addresses of name servers: ${servers}`)
    const { gateway, terms } = yield* selling
    const host = Millrace.layer({ operations: Upstreams.api.operations, payments: terms }).pipe(
      Layer.provideMerge(
        Upstreams.layer(
          { binFile, dnsServers, providers: yield* Providers.byEnvironment, mail: yield* MailSettings.byEnvironment },
          yield* SmsSettings.byEnvironment
        )
      ),
      Layer.provideMerge(gateway),
      Layer.provideMerge(Vault.Vault.layer),
      Layer.provideMerge(Blobs.layer(StoreUrl.MEMORY, Option.none())),
      Layer.provideMerge(StoreUrl.memoryLayer())
    )
    const missing = (yield* Effect.forEach(Upstreams.api.operations, missingOf).pipe(Effect.provide(host))).flat()
    const detail = `${Upstreams.api.operations.length - missing.length} of ${Upstreams.api.operations.length} operations have their provider`
    const needs = `some need a setting, as millrace serve --help says: ${ProviderNeeds.sentence(missing)}`
    return finding(detail, missing.length === 0 ? undefined : needs, true)
  })
)

const backups = (folder: string) =>
  check(
    "backups",
    Effect.gen(function* () {
      const overdue = yield* BackupFolder.overdueKeys(folder, yield* Clock.currentTimeMillis)
      return overdue.length === 0
        ? finding(`no keys below ${folder} are past their time`)
        : finding(`keys are past their time: ${overdue.join(", ")}`, "delete these folders, so that erasures hold there, too")
    })
  )

export interface Options {
  readonly store: string
  readonly register: Option.Option<string>
  /** The folder of backups. */
  readonly backups: Option.Option<string>
}

/** Runs every check; without a store, those of the host alone. */
export const run = (options: Options): Effect.Effect<ReadonlyArray<Check>, never, StateUrl.Given> =>
  Effect.gen(function* () {
    const host = yield* Effect.all([node, settings, upstreams, ...Option.toArray(options.backups).map(backups)])
    const [customers, ...others] = yield* Effect.all([
      CustomerChecks.checks,
      ServingChecks.checks,
      ClusterChecks.checks(options.store),
      StoreChecks.checks(options.store, options.register)
    ])
    return [...host, ...customers, ...others.flat()]
  })
