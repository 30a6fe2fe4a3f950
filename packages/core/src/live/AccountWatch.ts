/**
 * Tells those who watch an account that something happened to it, to one of its jobs or to one of its inboxes. It follows the log, so what
 * another host does is told too; and only while anybody watches. It tells hints: what stands is read by whoever is told.
 */
import { EventStore, Following, StreamName } from "@millrace/event-sourcing"
import { Context, Deferred, Effect, FiberHandle, Latch, Layer, Option, Schema, type Scope, Semaphore, Stream } from "effect"
import { Inbox } from "../inboxes/Inbox.ts"
import { Job } from "../jobs/Job.ts"
import { Account } from "../ledger/Account.ts"

/** What happened since it was last told. */
export interface Hint {
  /** Something of the account itself: credits or calls. */
  readonly account: boolean
  /** Ids of jobs, and of inboxes. */
  readonly jobs: ReadonlyArray<string>
  readonly inboxes: ReadonlyArray<string>
}

/** One who watches. */
export interface Watcher {
  /** Done as soon as something happened that was not taken. */
  readonly woken: Effect.Effect<void>
  /** Takes what happened since it was last taken. */
  readonly take: () => Hint
}

/** The account has as many watchers at this host as it may have. */
export class TooManyWatchers extends Schema.TaggedError<TooManyWatchers>()("TooManyWatchers", { limit: Schema.Int }) {
  override get message(): string {
    return `The account is watched ${this.limit} times already`
  }
}

/** Watchers of one account at one host: the tabs of a few people. */
export const WATCHERS = 16

export class AccountWatch extends Context.Service<
  AccountWatch,
  {
    /** Watches from now on, until the scope closes. */
    readonly watch: (accountId: string) => Effect.Effect<Watcher, TooManyWatchers, Scope.Scope>
    /** How many watch an account; without one, how many watch at all. */
    readonly size: (accountId?: string) => number
  }
>()("@millrace/core/live/AccountWatch") {
  static readonly layer: Layer.Layer<AccountWatch, never, EventStore.EventStore> = Layer.effect(
    AccountWatch,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const events = yield* EventStore.EventStore
  const owners = ownersIn(events)
  const following = yield* FiberHandle.make<never>()
  const turn = Semaphore.makeUnsafe(1)
  const watching = new Map<string, Set<Pending>>()
  let started = Deferred.makeUnsafe<void>()

  const tell = Effect.fnUntraced(function* ({ events }: EventStore.Batch) {
    for (const { stream, type } of events) {
      if (!isTold(stream, type)) continue
      const owner = yield* owners(stream)
      for (const pending of watching.get(owner ?? "") ?? []) pending.add(stream)
    }
  })
  const follow = (begun: Deferred.Deferred<void>) =>
    Effect.gen(function* () {
      let position = yield* Following.retryForever(events.head, () => {})
      Deferred.doneUnsafe(begun, Effect.void)
      const take = (batch: EventStore.Batch) =>
        Effect.map(
          Following.retryForever(tell(batch), () => {}),
          () => {
            position = batch.events.at(-1)?.position ?? position
          }
        )
      return yield* Following.follow(
        () => position,
        take,
        () => {}
      )
    }).pipe(Effect.provideService(EventStore.EventStore, events))

  /** Follows the log if anybody watches and nobody did, and stops if nobody watches any more. */
  const adjust = turn.withPermit(
    Effect.suspend(() => {
      if (watching.size === 0) return FiberHandle.clear(following)
      if (FiberHandle.getUnsafe(following)._tag === "Some") return Effect.void
      started = Deferred.makeUnsafe()
      return Effect.asVoid(FiberHandle.run(following, follow(started)))
    })
  )
  const join = (accountId: string) =>
    Effect.suspend(() => {
      const others = watching.get(accountId) ?? new Set()
      if (others.size >= WATCHERS) return Effect.fail(new TooManyWatchers({ limit: WATCHERS }))
      const pending = new Pending()
      watching.set(accountId, others.add(pending))
      return Effect.succeed(pending)
    })
  const leave = (accountId: string, pending: Pending) =>
    Effect.suspend(() => {
      const others = watching.get(accountId)
      others?.delete(pending)
      if (others?.size === 0) watching.delete(accountId)
      return adjust
    })
  return AccountWatch.of({
    watch: Effect.fnUntraced(function* (accountId) {
      const pending = yield* Effect.acquireRelease(join(accountId), (pending) => leave(accountId, pending))
      yield* adjust
      // What happens from now on is told, so whoever reads after this misses nothing
      yield* Deferred.await(started)
      return { woken: pending.woken.await, take: () => pending.take() }
    }),
    size: (accountId) =>
      accountId === undefined ? [...watching.values()].reduce((sum, { size }) => sum + size, 0) : (watching.get(accountId)?.size ?? 0)
  })
})

/** The most ids that a watcher is told at once. Who is told of more cannot have read them yet, and reads all. */
const MOST = 100

/** What one watcher was not told yet. */
class Pending {
  readonly woken = Latch.makeUnsafe(false)
  private account = false
  private readonly jobs = new Set<string>()
  private readonly inboxes = new Set<string>()

  add(stream: StreamName.StreamName): void {
    const category = StreamName.category(stream)
    const ids = category === Job.category ? this.jobs : category === Inbox.category ? this.inboxes : undefined
    if (ids === undefined) this.account = true
    else if (ids.size < MOST) ids.add(StreamName.id(stream))
    this.woken.openUnsafe()
  }

  take(): Hint {
    const hint = { account: this.account, jobs: [...this.jobs], inboxes: [...this.inboxes] }
    this.account = false
    this.jobs.clear()
    this.inboxes.clear()
    this.woken.closeUnsafe()
    return hint
  }
}

const CATEGORIES = new Set<string>([Account.category, Job.category, Inbox.category])

/** Whether an event is told. The lease of a job tells its caller nothing. */
const isTold = (stream: StreamName.StreamName, type: string): boolean =>
  CATEGORIES.has(StreamName.category(stream)) && type !== "JobLeaseExtended"

/** Owners that are kept in memory. */
const KEPT = 10_000

/** The account that a stream belongs to: its own, or that of the first event of a job or inbox; undefined if that cannot be read. */
const ownersIn = (events: EventStore.EventStore["Service"]) => {
  const known = new Map<string, string | undefined>()
  return Effect.fnUntraced(function* (stream: StreamName.StreamName) {
    if (StreamName.category(stream) === Account.category) return StreamName.id(stream)
    if (known.has(stream)) return known.get(stream)
    const first = yield* Stream.runHead(events.readStream(stream, { limit: 1 }))
    const owner = Option.getOrUndefined(Option.flatMap(first, ({ data }) => ownerOf(data)))
    if (known.size >= KEPT) known.clear()
    known.set(stream, owner)
    return owner
  })
}

const Owned = Schema.fromJsonString(Schema.Struct({ accountId: Schema.String }))
const decodeOwned = Schema.decodeUnknownOption(Owned)
const ownerOf = (data: string): Option.Option<string> => Option.map(decodeOwned(data), ({ accountId }) => accountId)
