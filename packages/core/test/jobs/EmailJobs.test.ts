/** Validation jobs query each domain once, report real progress, and resume from checkpoints. */
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Deferred, Effect, Exit, Layer, Result, Schema, Scope } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Charge } from "../../src/billing/Charge.ts"
import { PriceBook } from "../../src/billing/PricePlan.ts"
import * as Credits from "../../src/Credits.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import * as Millrace from "../../src/Millrace.ts"
import { type EmailReport, EmailValidator } from "../../src/operations/Email.ts"
import * as EmailJobs from "../../src/operations/EmailJobs.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { UpstreamUnavailable } from "../../src/work/OperationError.ts"
import { elapse, patiently, quiet, range, type Stores, seconds, stores, testing, until } from "../billing/Bench.ts"
import { MASTER } from "../vault/Vaults.ts"
import { idOf, LEASE } from "./JobBench.ts"

const ACCOUNT = "acc_1"
const PRICE = 600

interface World {
  /** The addresses of each call. */
  readonly calls: Array<ReadonlyArray<string>>
  /** Runs before each answer. */
  before: Effect.Effect<void>
  /** Domains that cannot be queried. */
  readonly down: Set<string>
}

const domainOf = (email: string) => email.slice(email.lastIndexOf("@") + 1)

const reportOn = (email: string): EmailReport => ({
  ...{ email, domain: domainOf(email), syntax_valid: true, mx_records: true, score: 0.9 },
  valid: !email.startsWith("bad"),
  disposable: domainOf(email).startsWith("throwaway")
})

const validator = (world: World) =>
  Layer.succeed(EmailValidator, {
    validate: ({ email }) => Effect.succeed(reportOn(email)),
    validateAll: ({ emails }) =>
      Effect.gen(function* () {
        yield* world.before
        world.calls.push(emails)
        return emails.map((email) =>
          world.down.has(domainOf(email))
            ? Result.fail(new UpstreamUnavailable({ upstream: "dns", reason: "down", isolated: true }))
            : Result.succeed(reportOn(email))
        )
      })
  })

const decodeRead = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.toCodecJson(EmailJobs.readValidationJob.success)))

const host = ({ events, states }: Stores, world: World) =>
  Effect.gen(function* () {
    const operations = [EmailJobs.validationJob, EmailJobs.readValidationJob]
    const layer = Millrace.layer({ operations, jobs: { drain: 0 } }).pipe(
      Layer.provideMerge([
        Layer.succeed(EventStore.EventStore, events),
        Layer.succeed(StateStore.StateStore, states),
        Layer.orDie(MasterKey.layer(MASTER)),
        validator(world)
      ])
    )
    const context = yield* Layer.build(Layer.fresh(layer))
    const { charge, ledger, prices } = yield* Effect.provideContext(
      Effect.all({ charge: Charge, ledger: Ledger, prices: PriceBook }),
      context
    )
    yield* prices.publish({ "email.validationJob": Credits.of(PRICE), "email.readValidationJob": Credits.zero })
    const caller = { accountId: ACCOUNT, requestId: "req" }
    return {
      ledger,
      create: (emails: ReadonlyArray<string>) => Effect.provideContext(charge.run(EmailJobs.validationJob, { emails }, caller), context),
      read: (job: string, page?: number, per_page?: number) =>
        Effect.map(
          Effect.provideContext(
            charge.run(
              EmailJobs.readValidationJob,
              { job, ...(page === undefined ? {} : { page }), ...(per_page === undefined ? {} : { per_page }) },
              caller
            ),
            context
          ),
          ({ data }) => decodeRead(data)
        ),
      balance: Effect.map(ledger.balance(ACCOUNT), ({ available, held }) => ({ available: Number(available), held: Number(held) }))
    }
  })

const GRANT = 1_000 * PRICE

const setting = Effect.gen(function* () {
  const shared = yield* stores
  const world: World = { calls: [], before: Effect.void, down: new Set() }
  const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
  const here = yield* Effect.provideService(host(shared, world), Scope.Scope, scope)
  yield* here.ledger.execute(ACCOUNT, Decisions.open({ sealedEmail: "sealed", emailHash: ACCOUNT }))
  yield* here.ledger.execute(ACCOUNT, Decisions.grant({ lotId: "lot", amount: Credits.of(GRANT), source: "promotion", expiresAt: null }))
  return { shared, world, here, stop: Scope.close(scope, Exit.void) }
})

const ends = (here: Effect.Success<ReturnType<typeof host>>, id: string, status: string) =>
  until(
    Effect.map(here.read(id), (job) => job.status === status),
    seconds(60)
  )

/** A thousand addresses, at forty domains in turn. */
const thousand = range(1_000).map((i) => `${i % 10 === 0 ? "bad" : "good"}${i}@${i % 8 === 0 ? "throwaway" : "domain"}${i % 40}.example`)

describe("a validation job", () => {
  testing(
    "queries each domain once and returns its results in pages",
    Effect.gen(function* () {
      const { world, here } = yield* setting
      const reply = yield* here.create(thousand)
      const id = idOf(reply)
      expect(JSON.parse(reply.data)).toEqual({
        ...{ job_id: id, status: "processing", total_emails: 1_000 },
        created_at: expect.stringMatching(/^2026-01-01T00:00:/u)
      })
      yield* ends(here, id, "completed")
      const asked = world.calls.flatMap((emails) => [...new Set(emails.map(domainOf))])
      expect(asked).toHaveLength(40)
      expect(new Set(asked).size).toBe(40)
      const pages = yield* Effect.forEach(range(11), (i) => here.read(id, i + 1, 100))
      expect(pages[0]).toMatchObject({
        progress: 100,
        total: 1_000,
        checked: 1_000,
        valid_count: 900,
        disposable_count: 125,
        unchecked: []
      })
      expect(pages.map(({ results }) => results.length)).toEqual([...range(10).map(() => 100), 0])
      const all = pages.flatMap(({ results }) => results)
      expect(all.map(({ email }) => email).toSorted()).toEqual(thousand.toSorted())
      for (const { disposable, email, valid } of all) expect(reportOn(email)).toMatchObject({ valid, disposable })
      expect(yield* here.read(id)).toMatchObject({ results: all.slice(0, 25) })
      expect(yield* here.balance).toEqual({ available: 0, held: 0 })
    })
  )

  testing(
    "can be read while it runs: full pages do not change",
    Effect.gen(function* () {
      const { world, here } = yield* setting
      world.before = Effect.sleep("1 second")
      const id = idOf(yield* here.create(thousand))
      let seen: ReadonlyArray<string> = []
      let last = -1
      for (;;) {
        const job = yield* here.read(id, 1, 100)
        const pages = yield* Effect.forEach(range(10), (i) => here.read(id, i + 1, 100))
        const emails = pages.flatMap(({ results }) => results.map(({ email }) => email))
        expect(emails.slice(0, seen.length)).toEqual(seen)
        expect(job.progress).toBe(Math.floor(job.checked / 10))
        expect(job.progress).toBeGreaterThanOrEqual(last)
        expect(emails).toHaveLength(job.checked)
        seen = emails
        last = job.progress
        if (job.status === "completed") break
        yield* elapse(seconds(1))
      }
      expect(seen).toHaveLength(1_000)
    })
  )

  testing(
    "resumes from its checkpoint if its process dies",
    Effect.gen(function* () {
      const { shared, stop, world, here } = yield* setting
      const reached = yield* Deferred.make<void>()
      world.before = Effect.suspend(() =>
        world.calls.length < 7 ? Effect.void : Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
      )
      const id = idOf(yield* here.create(thousand))
      yield* Deferred.await(reached)
      const before = yield* here.read(id)
      expect(before).toMatchObject({ status: "processing" })
      expect(before.checked).toBeGreaterThan(300)
      yield* patiently(stop)
      world.before = Effect.void
      const heir = yield* host(shared, world)
      expect(yield* heir.read(id)).toEqual(before)
      yield* elapse(LEASE)
      yield* ends(heir, id, "completed")
      const asked = world.calls.flatMap((emails) => [...new Set(emails.map(domainOf))])
      expect(asked).toHaveLength(40)
      expect(yield* heir.read(id)).toMatchObject({ checked: 1_000, valid_count: 900 })
    })
  )

  testing(
    "lists the addresses that could not be checked, which are free",
    Effect.gen(function* () {
      const { world, here } = yield* setting
      world.down.add("down.example")
      const id = idOf(yield* here.create(["a@up.example", "b@down.example", "a@up.example", "no address"]))
      yield* ends(here, id, "completed")
      expect(yield* here.read(id)).toMatchObject({ total: 4, checked: 3, valid_count: 3, unchecked: ["b@down.example"], progress: 100 })
      expect(yield* here.balance).toEqual({ available: GRANT - 3 * PRICE, held: 0 })
    })
  )

  testing(
    "fails if no address could be checked, after attempts from the start",
    Effect.gen(function* () {
      const { world, here } = yield* setting
      world.down.add("down.example")
      const id = idOf(yield* here.create(["a@down.example", "b@down.example"]))
      yield* quiet
      expect(yield* here.read(id)).toMatchObject({ status: "processing", checked: 0, unchecked: [] })
      yield* ends(here, id, "failed")
      expect(world.calls).toHaveLength(5)
      expect(yield* here.balance).toEqual({ available: GRANT, held: 0 })

      world.calls.length = 0
      const other = idOf(yield* here.create(["a@down.example"]))
      yield* elapse(100)
      world.down.clear()
      yield* ends(here, other, "completed")
      expect(world.calls).toHaveLength(2)
    })
  )
})

test("addresses of a domain are in one slice, and every address is in one", () => {
  const emails = fc.array(
    fc
      .tuple(fc.nat(9), fc.constantFrom("a.example", "B.example", "b.example", "bücher.example", "xn--bcher-kva.example", ""))
      .map(([name, domain]) => (domain === "" ? `name${name}` : `name${name}@${domain}`))
  )
  fc.assert(
    fc.property(emails, (emails) => {
      const slices = EmailJobs.slicesOf(emails)
      expect(slices.flat().toSorted()).toEqual(emails.toSorted())
      expect(slices.every((slice) => slice.length > 0)).toBe(true)
      for (const domain of ["a", "b", "cher"])
        expect(
          slices.filter((slice) => slice.some((email) => email.toLowerCase().includes(`${domain}.`) || email.includes(`${domain}-`))).length
        ).toBeLessThanOrEqual(1)
      expect(EmailJobs.slicesOf(emails)).toEqual(slices)
    })
  )
})
