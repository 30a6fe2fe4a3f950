/** What an administrator reads of a whole store, as promises: prices, holds, charges, history, audit, journal, backup. */
import { Journal, type Report } from "@millrace/audit"
import { type Millrace, Vault } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Option, Stream } from "effect"
import { resolve } from "../administration/Accounts.ts"
import * as Audit from "../administration/Audit.ts"
import * as Backup from "../administration/Backup.ts"
import * as Charges from "../administration/Charges.ts"
import * as Holds from "../administration/Holds.ts"
import * as Prices from "../administration/Prices.ts"
import * as Blobs from "../Blobs.ts"
import * as MasterKeyFile from "../MasterKeyFile.ts"
import * as SettingNames from "../SettingNames.ts"
import * as StoreUrl from "../StoreUrl.ts"
import { metadata, type Recorded } from "./Administration.ts"
import { BACKUP, JOURNAL } from "./ArgumentRules.ts"
import { assertGiven } from "./Given.ts"
import { assertArguments } from "./Mistakes.ts"
import { amountOf, type Run } from "./Run.ts"

/** An event of an account, as the log has it. Amounts are in thousandths of a credit. */
export interface AccountEvent {
  readonly revision: number
  readonly type: string
  readonly at: Date
  readonly data: Readonly<Record<string, unknown>>
  /** Who acted and why, for an administrator's act. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/** How to audit. The words are those of `millrace audit`, and so is the text of a list of streams. */
export interface AuditOptions {
  /** The report or the head of an earlier audit, which the log must extend. */
  readonly against?: Audit.Earlier
  /** The list of streams of that audit: with it, findings name each stream that differs. */
  readonly streams?: string
  /** Takes the list of streams, whose SHA-256 is the digest of the head, for a later `streams`. Keep it where you keep the head. */
  readonly writeStreams?: (list: string) => void | PromiseLike<void>
  /** The time at which holds count as overdue: that of the log's last event by default. */
  readonly at?: Date
  /** A file: audits the export of a whole log, as `millrace events` prints it, plain or by gzip, and not the store. */
  readonly events?: string
}

export interface Reports {
  readonly prices: {
    /** All versions of the price plan, or the one in force at an instant. */
    readonly list: (options?: { readonly at?: Date }) => Promise<ReadonlyArray<Prices.PriceVersion>>
    /**
     * Publishes prices in credits by operation, in force at once or from a later time. Those not named stay. Operations that this host does
     * not know are refused, unless `newOperations`.
     */
    readonly publish: (
      prices: Readonly<Record<string, number>>,
      options?: { readonly effectiveAt?: Date; readonly newOperations?: boolean } & Recorded
    ) => Promise<Prices.Published>
  }
  readonly holds: {
    /** Every open hold. Reads the whole log. */
    readonly list: () => Promise<ReadonlyArray<Holds.OpenHold>>
  }
  readonly charges: {
    /** What a request held, at which price, from which lots, and how it ended, for each of its attempts. Reads the whole log. */
    readonly show: (requestId: string) => Promise<ReadonlyArray<Charges.ShownCharge>>
  }
  /** The events of an account, oldest first. */
  readonly history: (account: string) => Promise<ReadonlyArray<AccountEvent>>
  /** Replays the whole log and checks it. Its report has the head to keep for the next audit. */
  readonly audit: (options?: AuditOptions) => Promise<Report>
  /**
   * The double-entry journal as text, in the format of an accounting tool. It fails with `UnverifiedLog` at the first event whose place or
   * hash is wrong, unless `unverified`. `events`: a file, whose export of a whole log it is the journal of, and not the store's.
   */
  readonly journal: (
    format: "hledger" | "ledger" | "beancount" | "csv" | "jsonl",
    options?: { readonly unverified?: boolean; readonly events?: string }
  ) => AsyncIterable<string>
  /** Copies a store in files while it is served, with its blobs unless these are in a bucket. The keys must be deleted after `keysLifetime` milliseconds: 30 days by default. */
  readonly backup: (options: {
    readonly to: string
    readonly keysLifetime?: number
    /** Includes the master key. False by default: keep it elsewhere. */
    readonly withMasterKey?: boolean
  }) => Promise<Backup.Backup>
}

const MONTH = 30 * 24 * 3_600_000

/** What reports need to know of a host. */
export interface HostOfReports {
  /** The address of the store. */
  readonly store: string
  /** The folder or the bucket of the blobs, where it is not by default. */
  readonly blobs: string | undefined
  /** The keys of the host's own operations and of the standard ones that it serves. */
  readonly operations: ReadonlyArray<string>
}

export const reportsOf = (
  run: Run<Millrace.Administration | EventStore.EventStore>,
  { blobs, operations, store }: HostOfReports
): Reports => ({
  prices: {
    list: ({ at } = {}) => run(Prices.list(at)),
    publish: (prices, { effectiveAt, newOperations = false, ...recorded } = {}) =>
      run(
        Effect.gen(function* () {
          const entries = Object.entries(prices).map(([operation, price]) => [operation, amountOf(price, `the price of ${operation}`)])
          const changes = Object.fromEntries(entries)
          if (!newOperations) yield* Prices.refuseUnknown(changes, operations)
          return yield* Prices.publish(changes, effectiveAt, metadata("prices.publish", recorded))
        })
      )
  },
  holds: { list: () => run(Holds.list) },
  charges: {
    show: (requestId) =>
      run(
        Effect.flatMap(Vault.Vault, (vault) =>
          Charges.show(requestId, (account, sealed) => vault.open(Vault.ofAccount(account), "failure", sealed))
        )
      )
  },
  history: (account) => run(Effect.flatMap(resolve(account), historyOf)),
  audit: (options) => run(audited(options ?? {})),
  journal: (format, { events, unverified = false } = {}) => ({
    [Symbol.asyncIterator]: async function* () {
      assertGiven("journal", { format, events, unverified }, JOURNAL)
      const pieces =
        events === undefined
          ? Journal.journal(format, { unverified })
          : Stream.unwrap(Effect.map(Audit.exportOf(events), (log) => Journal.journalOfExport(format, log, { unverified })))
      const text = await run(
        Effect.map(Effect.context<EventStore.EventStore>(), (context) => Stream.toAsyncIterable(Stream.provideContext(pieces, context)))
      )
      yield* text
    }
  }),
  backup: async (options) => {
    assertArguments("backup", options, BACKUP)
    const { keysLifetime = MONTH, to, withMasterKey = false } = options
    return run(
      Effect.gen(function* () {
        const files = Blobs.within(yield* StoreUrl.existing(store), Option.fromUndefinedOr(blobs))
        const masterKey = withMasterKey
          ? yield* MasterKeyFile.find(
              files.masterKey,
              `there is no master key to include: neither the option masterKey, nor MILLRACE_MASTER_KEY, nor ${files.masterKey}`
            )
          : undefined
        return yield* Backup.make(files, { to, keysLifetime, masterKey })
      })
    )
  }
})

const audited = ({ against, at, events, streams: text, writeStreams }: AuditOptions) =>
  Effect.gen(function* () {
    const names = yield* SettingNames.Current
    const options: Audit.Options = {
      against: against === undefined ? undefined : yield* Audit.headOf(against, names.against),
      streams: text === undefined ? undefined : { text, from: names.streams },
      at,
      writeStreams: writeStreams !== undefined
    }
    const { report, streams = "" } = yield* events === undefined ? Audit.run(options) : Audit.runExport(events, options)
    // What it throws is the host's own error
    if (writeStreams !== undefined) yield* Effect.promise(async () => writeStreams(streams))
    return report
  })

const historyOf = (account: string) =>
  Effect.flatMap(EventStore.EventStore, (events) =>
    Stream.runCollect(
      Stream.map(
        events.readStream(StreamName.make("account", account)),
        (event): AccountEvent => ({
          revision: event.revision,
          type: event.type,
          at: new Date(HashChain.atOf(event)),
          data: JSON.parse(event.data),
          metadata: JSON.parse(event.metadata)
        })
      )
    )
  )
