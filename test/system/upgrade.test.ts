/**
 * An upgrade host by host: one of this release and one of a next one side by side on one store. The next one knows one event more, and
 * its fold keeps more, so its snapshots are of another version. Neither is led astray by the other: the older refuses the streams that it
 * cannot read, and those only, and says so.
 */
import { Account, AccountEvent, AccountSnapshot, Credits, Decisions, Lots } from "@millrace/core"
import { Aggregate, EventCodec, EventStore, HashChain, MemoryEventStore, StreamName } from "@millrace/event-sourcing"
import { PostgresEventStore } from "@millrace/event-store-postgres"
import { Context, Effect, Exit, Fiber, Layer, Logger, Result, Schema, SchemaGetter, type Scope, Stream } from "effect"
import * as fc from "fast-check"
import pg from "pg"
import { describe, expect, test } from "vitest"
import { checkAsync } from "../../packages/core/test/vault/Property.ts"
import { freshSchema, url } from "../../packages/event-store-postgres/test/Postgres.ts"
import { type Answer, eventually, host, testing } from "../../packages/http/test/Host.ts"
import { type Change, changed } from "./Changes.ts"
import { millrace } from "./InProcess.ts"
import * as Release from "./Release.ts"
import { BIN, BIN_PRICE, call, Granted, Opened, problemOf, type Server, serve, UNLIMITED } from "./Server.ts"

// the next release

const TierSet = Schema.TaggedStruct("AccountTierSet", { tier: Schema.String })
const NextEvent = Schema.Union([...Object.values(AccountEvent.cases), TierSet])
type NextEvent = typeof NextEvent.Type

/** It keeps the tier as well, which the snapshots of this release would leave out without a word, and the event with it. */
type Next = Account.Account & { readonly tier: string }

const Next = {
  category: Account.Account.category,
  codec: EventCodec.make(NextEvent),
  initial: { ...Account.initial, tier: "standard" },
  evolve: (state: Next, event: NextEvent, at: number): Next =>
    event._tag === "AccountTierSet" ? { ...state, tier: event.tier } : { ...Account.Account.evolve(state, event, at), tier: state.tier }
}

const NextSaved = Schema.Struct({ ...AccountSnapshot.SavedAccount.fields, tier: Schema.String })
const NextState: Schema.Codec<Next, unknown> = Schema.toCodecJson(NextSaved).pipe(
  Schema.decodeTo(
    Schema.declare((_): _ is Next => true),
    {
      decode: SchemaGetter.transform((saved) => ({ ...AccountSnapshot.restore(saved), tier: saved.tier })),
      encode: SchemaGetter.transform((state) => ({ ...AccountSnapshot.save(state), tier: state.tier }))
    }
  )
)

const nextSnapshots = { version: AccountSnapshot.VERSION + 1, state: NextState, every: 2 }

/** Hosts of either release, as far as accounts go. Both save a snapshot at every other event. */
const older = Aggregate.make(Account.Account, { snapshots: { ...AccountSnapshot.accountSnapshots, every: 2 } })
const newer = Aggregate.make(Next, { snapshots: nextSnapshots })

const setTier = (tier: string) => () => Result.succeed([{ _tag: "AccountTierSet", tier } as const])
const grant = (lotId: string) => Decisions.grant({ lotId, amount: Credits.of(1_000), source: "promotion" })

const snapshotOf = (store: EventStore.EventStore["Service"], id: string, version: number) =>
  store.loadSnapshot(StreamName.make(Aggregate.snapshotCategory("account", version), id))

const tagOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string =>
  Exit.isSuccess(exit) ? "ok" : exit.cause.reasons.map((reason) => (reason._tag === "Fail" ? reason.error._tag : reason._tag)).join()

const balanceOf = (account: Account.Account): number => Lots.available(account.purse.lots, Number.MAX_SAFE_INTEGER)

describe("two releases on one store", () => {
  test("serve the same accounts, each by its own snapshots, until one writes an event that the other does not know", () =>
    checkAsync(
      fc.asyncProperty(
        fc.array(
          fc.record({
            by: fc.constantFrom("older", "newer", "anew"),
            account: fc.constantFrom("a", "b", "c"),
            does: fc.oneof({ arbitrary: fc.constant("grant"), weight: 9 }, { arbitrary: fc.constant("set tier"), weight: 1 })
          }),
          { minLength: 5, maxLength: 50 }
        ),
        (steps) =>
          Effect.gen(function* () {
            const store = yield* MemoryEventStore.make
            const on = <A, E>(opened: Effect.Effect<A, E, EventStore.EventStore | Scope.Scope>) =>
              Effect.provideService(opened, EventStore.EventStore, store)
            const next = yield* on(newer)
            let now = yield* on(older)
            const granted: Record<string, number> = { a: 0, b: 0, c: 0 }
            const unknown = new Set<string>()
            for (const account of ["a", "b", "c"]) yield* now.execute(account, Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
            for (const [i, { by, account, does }] of steps.entries()) {
              if (by === "anew") now = yield* on(older)
              else if (by === "newer") {
                yield* does === "grant" ? next.execute(account, grant(`lot_${i}`)) : next.execute(account, setTier("gold"))
                if (does === "grant") granted[account] = (granted[account] ?? 0) + 1_000
                else unknown.add(account)
              } else {
                const exit = yield* Effect.exit(now.execute(account, grant(`lot_${i}`)))
                if (unknown.has(account)) expect(tagOf(exit)).toBe("StreamRefused")
                else granted[account] = (granted[account] ?? 0) + 1_000
                expect(Exit.isSuccess(exit)).toBe(!unknown.has(account))
              }
            }
            for (const account of ["a", "b", "c"]) {
              const { state } = yield* next.read(account)
              expect(balanceOf(state)).toBe(granted[account])
              expect(state.tier).toBe(unknown.has(account) ? "gold" : "standard")
              const read = yield* Effect.exit(now.read(account))
              if (unknown.has(account)) expect(tagOf(read)).toBe("StreamRefused")
              else expect(Exit.isSuccess(read) && balanceOf(read.value.state)).toBe(granted[account])
            }
            expect(new Set(now.refused().map(({ stream }) => stream))).toEqual(new Set([...unknown].map((id) => `account-${id}`)))
          }).pipe(Effect.scoped, Effect.provide(Logger.layer([])), Effect.runPromise)
      ),
      60
    ))
})

/** What a job's stream ends with. */
const lastOf = (store: EventStore.EventStore["Service"], stream: StreamName.StreamName) =>
  Effect.map(Stream.runCollect(store.readStream(stream, { direction: "backwards", limit: 1 })), ([last]) => {
    if (last === undefined) throw new Error(`There is no ${stream}`)
    return { hash: HashChain.hashOf(last), at: HashChain.atOf(last), revision: last.revision }
  })

const Accepted = Schema.Struct({ data: Schema.Struct({ id: Schema.String }) })

/** The answer, however long the clock has to go on for it. */
const waited = (call: Effect.Effect<Answer>) =>
  Effect.gen(function* () {
    const calling = yield* Effect.forkChild(call)
    yield* eventually(
      Effect.sync(() => calling.pollUnsafe()),
      (exit) => exit !== undefined
    )
    return yield* Fiber.join(calling)
  })

const MASTER = { MILLRACE_MASTER_KEY: "5a".repeat(32) }

/** A process of this release or of the next one, by the real server. */
const serverOf = (release: ReadonlyArray<Change>, store: string): Promise<Server> =>
  serve(["--store", store, "--metrics-port", "0"], changed(release, { env: { ...UNLIMITED, ...MASTER } }))

const Ready = Schema.fromJsonString(Schema.Struct({ status: Schema.String, refused: Schema.Array(Schema.String) }))
const readyOf = async ({ url }: Server) => {
  const { status, body } = await call(`${url}/ready`)
  return { code: status, ...Schema.decodeUnknownSync(Ready)(body) }
}

const refusedMetric = async ({ metrics = "" }: Server) =>
  /^millrace_streams_refused(?:\{[^}]*\})? (?<count>\d+)/mu.exec((await call(metrics)).body)?.groups?.["count"]

test("charge the same accounts in several processes; the older refuses what it cannot read, reports it, and serves the rest", {
  timeout: 120_000
}, async () => {
  const database = new pg.Client({ connectionString: await url() })
  await database.connect()
  const name = freshSchema()
  await database.query(`CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE template0`)
  const address = new URL(await url())
  address.pathname = name
  const store = address.href
  const [old, next] = await Promise.all([serverOf(Release.present, store), serverOf(Release.next, store)])
  const both = [old, next]

  const opened = async () => {
    const of = async <A>(shape: Schema.Codec<A, unknown>, args: ReadonlyArray<string>): Promise<A> => {
      const { code, stdout, stderr } = await millrace([...args, "--store", store], { env: MASTER })
      if (code !== 0) throw new Error(stderr)
      return Schema.decodeUnknownSync(shape)(JSON.parse(stdout))
    }
    const { account, key } = await of(Opened, ["accounts", "open", "--email", `${crypto.randomUUID()}@example.com`])
    await of(Granted, ["credits", "grant", "--account", account, "--amount", "100", "--source", "promotion"])
    return { account, key }
  }
  const [x, y] = [await opened(), await opened()]
  const spend = ({ url }: Server, { key }: typeof x) => call(`${url}${BIN}`, { key })
  const balance = async ({ url }: Server, { key }: typeof x) =>
    Schema.decodeUnknownSync(Billing)((await call(`${url}/api/v1/account/billing`, { key })).body).data.balance

  // One after the other, and at once
  let calls = 0
  for (const account of [x, y]) {
    for (const server of [old, next, next, old, next, old, old, next]) expect((await spend(server, account)).status).toBe(200)
    const answers = await Promise.all(both.flatMap((server) => [1, 2, 3, 4].map(() => spend(server, account))))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    calls = 8 + answers.length
    for (const server of both) expect(await balance(server, account)).toBe(100 - calls * BIN_PRICE)
  }

  await Effect.runPromise(
    Effect.gen(function* () {
      const events = Context.get(yield* Layer.build(PostgresEventStore.layer({ url: store })), EventStore.EventStore)
      // Each keeps its own up to date, and neither is in the other's way
      for (const version of [AccountSnapshot.VERSION, nextSnapshots.version]) {
        const snapshot = yield* snapshotOf(events, x.account, version)
        expect(snapshot?.revision).toBeGreaterThan(8)
        expect(snapshot?.data.includes("standard")).toBe(version === nextSnapshots.version)
      }
      expect(yield* Effect.promise(() => Promise.all(both.map(readyOf)))).toEqual(
        both.map(() => ({ code: 200, status: "ready", refused: [] }))
      )
      const setting = yield* Effect.provideService(newer, EventStore.EventStore, events)
      yield* setting.execute(x.account, setTier("gold"))
    }).pipe(Effect.scoped)
  )

  const stream = `account-${x.account}`
  for (const _ of [1, 2]) {
    const refused = await spend(old, x)
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "60"])
    expect(problemOf(refused)).toMatchObject({
      code: "account_unavailable",
      message: "The account cannot be read at this host. Nothing was charged."
    })
  }
  expect((await spend(old, y)).status).toBe(200)
  expect((await spend(next, x)).status).toBe(200)
  expect(await readyOf(old)).toEqual({ code: 200, status: "ready", refused: [stream] })
  expect(await readyOf(next)).toEqual({ code: 200, status: "ready", refused: [] })
  expect([await refusedMetric(old), await refusedMetric(next)]).toEqual(["1", "0"])
  const told = old.stderr.split("\n").filter((line) => line.includes("is refused at this host"))
  expect(told.length).toBe(1)
  expect(told[0]).toMatch(new RegExp(`${stream} is refused at this host, for its event \\d+ cannot be read: AccountTierSet"`, "u"))
  expect(next.stderr).not.toContain("refused at this host")

  // In its place
  expect((await old.stop()).code).toBe(0)
  const replaced = await serverOf(Release.next, store)
  expect((await spend(replaced, x)).status).toBe(200)
  for (const server of [next, replaced]) expect(await balance(server, x)).toBe(100 - (calls + 2) * BIN_PRICE)
  await Promise.all([next, replaced].map((server) => server.stop()))
  await database.query(`DROP DATABASE ${name} WITH (FORCE)`)
  await database.end()
})

const Billing = Schema.fromJsonString(Schema.Struct({ data: Schema.Struct({ balance: Schema.Finite }) }))

testing(
  "refuse and report only the job with an unknown event",
  Effect.gen(function* () {
    const one = yield* host()
    const { accountId, bearer } = yield* one.account(200)
    const speak = () =>
      one.call("/api/v1/audio/tts", { method: "POST", headers: { ...bearer, prefer: "wait=20" }, body: { text: "hello" } })
    const pathOf = ({ json }: Answer) => `/api/v1/audio/tts/${Schema.decodeUnknownSync(Accepted)(json).data.id}`
    const [known, unknown] = [pathOf(yield* waited(speak())), pathOf(yield* waited(speak()))]
    const stream = StreamName.make("job", unknown.split("/").at(-1) ?? "")
    yield* one.run(
      Effect.gen(function* () {
        const events = yield* EventStore.EventStore
        const { hash, at, revision } = yield* lastOf(events, stream)
        const sealed = HashChain.seal(hash, stream, revision + 1, { id: crypto.randomUUID(), type: "JobRated", data: "{}" }, at, "{}")
        yield* events.append(stream, revision, [sealed])
      })
    )
    const refused = yield* one.call(unknown, { headers: bearer })
    expect(refused.status).toBe(503)
    expect((yield* one.call(known, { headers: bearer })).status).toBe(200)
    expect((yield* waited(speak())).status).toBe(200)
    const ready = yield* one.call("/ready")
    expect([ready.status, ready.json]).toMatchObject([200, { status: "ready", refused: [stream] }])
    expect(yield* one.balance(accountId)).toMatchObject({ held: 0 })
  })
)
