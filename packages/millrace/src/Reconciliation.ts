/** Lists what an operator reconciles after a restore: the kinds of facts that may be missing or outdated, their number, and advice. */
import { Account, ApiKey, CallsInDoubt, toIso } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import type { Manifest } from "./BackupFolder.ts"

/** `count` is null where it cannot be known. */
export interface Item {
  readonly what: string
  readonly count: number | null
  readonly advice: string
}

const item = (what: string, count: number | null, advice: string): Item => ({ what, count, advice })

const accountCodec = Account.Account.codec
const keyCodec = ApiKey.ApiKey.codec

/** Holds that are open, and keys that are neither revoked nor expired. */
const openIn = (now: number) =>
  Effect.gen(function* () {
    const log = yield* EventStore.EventStore
    const accounts = new Map<string, Account.Account>()
    const keys = new Map<string, ApiKey.ApiKey>()
    yield* Stream.runForEachArray(log.readAll(EventStore.start), (events) =>
      Effect.sync(() => {
        for (const event of events) {
          const { stream, type, data } = event
          const at = HashChain.timeOf(event)
          const category = StreamName.category(stream)
          if (category === Account.Account.category) {
            accounts.set(stream, Account.Account.evolve(accounts.get(stream) ?? Account.initial, accountCodec.decode(type, data), at))
          } else if (category === ApiKey.ApiKey.category) {
            keys.set(stream, ApiKey.ApiKey.evolve(keys.get(stream) ?? ApiKey.ApiKey.initial, keyCodec.decode(type, data), at))
          }
        }
      })
    )
    const isClosed = (accountId: string) => accounts.get(StreamName.make(Account.Account.category, accountId))?.status === "closed"
    const works = (key: ApiKey.ApiKey) =>
      key.status === "issued" && (key.expiresAt === null || key.expiresAt > now) && !isClosed(key.accountId)
    return {
      holds: [...accounts.values()].reduce((count, { purse }) => count + [...purse.holds].length, 0),
      keys: [...keys.values()].filter(works).length
    }
  })

const promises = Effect.gen(function* () {
  const callsInDoubt = yield* CallsInDoubt
  let count = 0
  let after: string | undefined
  do {
    const page = yield* callsInDoubt.page(after)
    count += page.length
    after = page.at(-1)?.reservationId
  } while (after !== undefined)
  return count
})

interface Restored {
  readonly now: number
  readonly withKeys: boolean
  /** How many inboxes can be read. */
  readonly inboxes: number
}

/** The items of a store that was restored from the backup of this manifest. */
export const items = ({ madeAt, head }: Manifest, { inboxes, now, withKeys }: Restored) =>
  Effect.gen(function* () {
    const { holds, keys } = yield* openIn(now)
    const since = toIso(madeAt)
    const lost = item("sealed data", null, "was left behind with its keys: addresses, labels and kept replies cannot be read any more")
    const restoredInboxes = item(
      "inboxes that can be read",
      inboxes,
      `one that was deleted after ${since} can be read again, and receives mail at the address that it had then, until it expires: the latest state database, named by --erased, knows which were deleted`
    )
    return [
      ...(withKeys ? [] : [lost]),
      item(
        "events after the backup",
        null,
        `whatever was written after ${since}, position ${head.position || "0"}, is gone: accounts opened, prices published, calls charged`
      ),
      item(
        "payments after the backup",
        null,
        `compare with the payment provider from ${since} on and grant again with the same --payment-ref, which grants once; claw back what was charged back`
      ),
      item(
        "API keys that work",
        keys,
        `a key revoked after ${since} works again, one issued since does not: go through keys list, and revoke again before serving`
      ),
      item("accounts suspended or closed after the backup", null, "are as they were before: suspend or close them again"),
      ...(inboxes === 0 ? [] : [restoredInboxes]),
      item("open holds", holds, "end by themselves when they expire, and are refunded, also where the call was answered after the backup"),
      item(
        "promises that an unanswered call costs nothing",
        yield* promises,
        `are kept by the next server; one that was made after ${since} is gone with its charge`
      ),
      item(
        "idempotency keys used after the backup",
        null,
        "are forgotten with their replies: a caller who tries again runs the call again, and is charged for it once here"
      )
    ]
  }).pipe(Effect.provide(CallsInDoubt.layer))
