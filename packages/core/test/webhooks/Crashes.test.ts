/** Every notice reaches its webhook at least once, or becomes a dead letter, wherever a host crashes and whatever fails. */
import { StateStore } from "@millrace/event-sourcing"
import { Effect, Random } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as SeededRandom from "../../../testing/src/SeededRandom.ts"
import * as Delivery from "../../src/webhooks/Delivery.ts"
import { WebhookNotSent } from "../../src/webhooks/WebhookSender.ts"
import { elapse, minutes, range, type Stores, seconds, stores, underTestClock } from "../billing/Bench.ts"
import { mortalHost, OK, openings, type Receivers, receivers, rowsOf } from "./WebhookBench.ts"

const OPTIONS = { ttl: "15 seconds", pauses: [seconds(5), seconds(20), minutes(1)] } as const

/** The ids of the notices that a receiver has accepted. */
const accepting = (to: Receivers, answer: Receivers["answer"]) => {
  const accepted: Array<string> = []
  to.answer = (post) =>
    Effect.tap(answer(post), ({ status }) =>
      Effect.sync(() => {
        if (status < 300) accepted.push(`${post.url} ${post.id}`)
      })
    )
  return accepted
}

/** What became of every notice for the webhooks at these addresses: it was accepted or is a dead letter. */
const lost = (shared: Stores, accepted: ReadonlyArray<string>, urls: ReadonlyMap<string, string>) =>
  Effect.gen(function* () {
    const dead = (yield* rowsOf(shared, Delivery.DEAD))
      .map((row) => Delivery.of(row))
      .map(({ notice, webhook }) => `${webhook} ${notice.id}`)
    const notices = yield* openings(shared)
    const missing = [...urls].flatMap(([id, url]) =>
      notices.filter((notice) => !accepted.includes(`${url} ${notice}`) && !dead.includes(`${id} ${notice}`))
    )
    return { missing, dead: dead.length, notices: notices.length }
  })

/** The state store of a host that crashes at its n-th call: before it reaches the store, or after. */
const crashing = (store: Stores["states"], at: number, stage: "before" | "after", crash: Effect.Effect<void>) => {
  let calls = 0
  const gone = Effect.andThen(crash, Effect.fail(new StateStore.StateUnavailable({ reason: "crashed" })))
  const call = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | StateStore.StateUnavailable> =>
    Effect.suspend(() => {
      if (++calls !== at) return effect
      return stage === "before" ? gone : Effect.andThen(effect, gone)
    })
  const states = StateStore.StateStore.of({
    get: (...of) => call(store.get(...of)),
    list: (...of) => call(store.list(...of)),
    write: (...of) => call(store.write(...of))
  })
  return { states, calls: () => calls }
}

/** A host delivers to a receiver that first fails, and crashes at a call of the state store. Another one takes over. */
const crashAt = (at: number, stage: "before" | "after") =>
  Effect.gen(function* () {
    const shared = yield* stores
    const to = receivers()
    let asked = 0
    const accepted = accepting(to, () => Effect.succeed(++asked % 3 === 1 ? { status: 500, retryAfter: undefined } : OK))
    const setup = yield* mortalHost(shared, to, { deliver: false })
    const { id } = yield* setup.webhooks.add({ url: "https://receiver.example" })
    const first = yield* mortalHost(shared, to, OPTIONS)
    let store: ReturnType<typeof crashing> | undefined
    yield* first.through(({ states }) => {
      store = crashing(states, at, stage, first.cut)
      return { states: store.states }
    })
    for (const _ of range(2)) {
      yield* setup.open()
      yield* elapse(seconds(4))
    }
    yield* first.die
    yield* mortalHost(shared, to, OPTIONS)
    yield* elapse(seconds(30))
    yield* setup.open()
    yield* elapse(minutes(2))
    const found = yield* lost(shared, accepted, new Map([[id, "https://receiver.example"]]))
    expect(found).toEqual({ missing: [], dead: 0, notices: 3 })
    expect(yield* rowsOf(shared, Delivery.WAITING)).toEqual([])
    return (store?.calls() ?? 0) >= at
  })

describe.each(["before", "after"] as const)("a crash %s a call of the state store", (stage) => {
  test("loses no notice, whichever call it is", async () => {
    let at = 1
    for (let reached = true; reached; at++) {
      await underTestClock(
        Effect.map(Random.withSeed(crashAt(at, stage), at), (was) => {
          reached = was
        })
      )
    }
    expect(at).toBeGreaterThan(15)
  })
})

test.each([Delivery.WAITING, "webhookFeed"])("a webhook that is added while the first host to deliver reads %s misses nothing", (space) =>
  underTestClock(
    Effect.gen(function* () {
      const shared = yield* stores
      const to = receivers()
      const setup = yield* mortalHost(shared, to, { deliver: false })
      let isAdded = false
      const addFirst = Effect.suspend(() => {
        if (isAdded) return Effect.void
        isAdded = true
        return Effect.andThen(Effect.orDie(setup.webhooks.add({ url: "https://receiver.example" })), Effect.orDie(setup.open()))
      })
      const { states } = shared
      const slow: StateStore.StateStore["Service"] = {
        ...states,
        get: (from, key) => Effect.andThen(from === space ? addFirst : Effect.void, states.get(from, key)),
        list: (from, options) => Effect.andThen(from === space ? addFirst : Effect.void, states.list(from, options))
      }
      yield* mortalHost({ ...shared, states: slow }, to, OPTIONS)
      yield* elapse(minutes(1))
      expect(to.posts.map(({ id }) => id)).toEqual(yield* openings(shared))
      expect(to.posts).toHaveLength(1)
    })
  )
)

test("a notice that a webhook selects since a moment ago is not dropped while the state store is slow", () =>
  underTestClock(
    Effect.gen(function* () {
      const shared = yield* stores
      const to = receivers()
      const setup = yield* mortalHost(shared, to, { deliver: false })
      const { id } = yield* setup.webhooks.add({ url: "https://receiver.example", names: ["credits.low"] })
      let isSlow = false
      const meanwhile = Effect.suspend(() => {
        if (!isSlow) return Effect.void
        isSlow = false
        return Effect.orDie(setup.webhooks.change(id, { names: null })).pipe(
          Effect.andThen(Effect.orDie(setup.open())),
          Effect.andThen(Effect.sleep("1 second"))
        )
      })
      const { states } = shared
      const slow: StateStore.StateStore["Service"] = {
        ...states,
        list: (from, options) => Effect.andThen(from === Delivery.WAITING ? meanwhile : Effect.void, states.list(from, options))
      }
      yield* mortalHost({ ...shared, states: slow }, to, OPTIONS)
      yield* elapse(seconds(20))
      isSlow = true
      yield* elapse(minutes(1))
      expect(to.posts.map(({ id }) => id)).toEqual(yield* openings(shared))
      expect(to.posts).toHaveLength(1)
    })
  ))

test("a delivery that is written while its webhook is removed does not stay", () =>
  underTestClock(
    Effect.gen(function* () {
      const shared = yield* stores
      const to = receivers()
      const setup = yield* mortalHost(shared, to, { deliver: false })
      const { id } = yield* setup.webhooks.add({ url: "https://receiver.example" })
      let isRemoved = false
      const removal = Effect.suspend(() => {
        isRemoved = true
        return Effect.andThen(Effect.orDie(setup.webhooks.remove(id)), Effect.sleep("6 seconds"))
      })
      const { states } = shared
      const slow: StateStore.StateStore["Service"] = {
        ...states,
        write: (changes) => {
          const isDelivery = changes.some(({ _tag, space }) => _tag === "put" && space === Delivery.WAITING)
          return Effect.andThen(isDelivery && !isRemoved ? removal : Effect.void, states.write(changes))
        }
      }
      yield* mortalHost({ ...shared, states: slow }, to, OPTIONS)
      yield* setup.open()
      yield* elapse(minutes(2))
      expect(isRemoved).toBe(true)
      expect(yield* rowsOf(shared, Delivery.WAITING)).toEqual([])
    })
  ))

/** Two webhooks, hosts that come, crash and leave, stores that fail, and receivers that answer anything. */
const chaos = (seed: number) =>
  Effect.gen(function* () {
    const random = SeededRandom.make(seed)
    const shared = yield* stores
    const to = receivers()
    const setup = yield* mortalHost(shared, to, { deliver: false })
    let isCalm = false
    const accepted = accepting(to, () => {
      if (isCalm || random.chance(0.5)) return Effect.succeed(OK)
      if (random.chance(0.3)) return Effect.fail(new WebhookNotSent({ reason: "drawn" }))
      const answer = { status: random.pick([400, 429, 500, 503]), retryAfter: random.chance(0.2) ? seconds(7) : undefined }
      return Effect.as(Effect.sleep(random.below(seconds(5))), answer)
    })
    const urls = new Map<string, string>()
    for (const url of ["https://one.example", "https://two.example"]) urls.set((yield* setup.webhooks.add({ url })).id, url)
    const options = { ...OPTIONS, waitingLimit: 3, concurrency: 2 }
    const hosts: Array<Effect.Success<ReturnType<typeof mortalHost>>> = []
    for (const _ of range(25)) {
      while (hosts.length < 2) hosts.push(yield* mortalHost(shared, to, options))
      const one = hosts[random.below(hosts.length)]
      const act = random.below(6)
      if (act <= 1) yield* setup.open()
      if (act === 2) {
        if (one !== undefined) hosts.splice(hosts.indexOf(one), 1)
        yield* one === undefined ? Effect.void : random.chance(0.7) ? one.die : one.stop
      }
      if (act === 3 && one !== undefined)
        yield* one.fail({ random: random.fork("events"), unavailable: 0.3, rates: { before: 0.2, after: 0.2 } })
      if (act === 4 && one !== undefined) yield* one.heal
      yield* elapse(random.below(seconds(8)))
    }
    isCalm = true
    for (const host of hosts) yield* host.die
    yield* mortalHost(shared, to, options)
    yield* elapse(minutes(3))
    yield* elapse(minutes(3))
    const found = yield* lost(shared, accepted, urls)
    expect(found.missing).toEqual([])
    expect(yield* rowsOf(shared, Delivery.WAITING)).toEqual([])
    return found
  })

test("any interleaving of notices, failures and crashes of two hosts loses no notice", async () => {
  let notices = 0
  await fc.assert(
    fc.asyncProperty(fc.noShrink(fc.nat()), async (seed) => {
      await underTestClock(
        Effect.map(Random.withSeed(chaos(seed), seed), (found) => {
          notices += found.notices
        })
      )
    }),
    { numRuns: 12 }
  )
  expect(notices).toBeGreaterThan(30)
})
