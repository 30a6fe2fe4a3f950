/** Delivery of webhooks: what is sent when, to whom, and what becomes of failures. */
import { Effect, Fiber, Redacted, Schema } from "effect"
import { describe, expect } from "vitest"
import type * as Millrace from "../../src/Millrace.ts"
import * as Body from "../../src/webhooks/Body.ts"
import * as Deliveries from "../../src/webhooks/Deliveries.ts"
import * as Delivery from "../../src/webhooks/Delivery.ts"
import { WebhookNotSent } from "../../src/webhooks/WebhookSender.ts"
import { elapse, hours, minutes, range, type Stores, seconds, stores, testing } from "../billing/Bench.ts"
import { type Host, host, OK, openings, type Receivers, receivers, rowsOf } from "./WebhookBench.ts"

const URL = "https://receiver.example/hook"

/** A host with a webhook for all notices. */
const setting = (options: Millrace.WebhookOptions = {}) =>
  Effect.gen(function* () {
    const shared = yield* stores
    const to = receivers()
    const here = yield* host(shared, to, options)
    const { id } = yield* here.webhooks.add({ url: URL })
    yield* elapse(seconds(1))
    return { shared, to, here, id }
  })

const answers = (to: Receivers, status: number, retryAfter?: number) => {
  to.answer = () => Effect.succeed({ status, retryAfter })
}

const sent = ({ posts }: Receivers) => posts.map(({ id }) => id)

const waiting = (shared: Stores) => Effect.map(rowsOf(shared, Delivery.WAITING), (rows) => rows.length)

describe("a notice", () => {
  testing(
    "is posted once, in a body that fits its schema, and then forgotten",
    Effect.gen(function* () {
      const { here, shared, to } = yield* setting()
      const account = yield* here.open()
      yield* here.registration.verify(account)
      yield* elapse(minutes(1))
      expect(to.posts.map(({ body }) => JSON.parse(body).type)).toEqual(["account.opened", "credits.granted"])
      const [opened, granted] = to.posts.map(({ body }) => JSON.parse(body))
      const decode = Schema.decodeUnknownSync(Body.schemaOf("credits.granted") as unknown as Schema.Codec<unknown>)
      expect(decode(granted)).toBeDefined()
      expect(opened.data).toEqual({ account, reference: `${here.name}-1` })
      expect(granted.data).toMatchObject({ account, amount: 200, source: "signup" })
      expect(to.posts[0]).toMatchObject({ url: URL, id: (yield* openings(shared))[0] })
      expect(yield* waiting(shared)).toBe(0)
    })
  )

  testing(
    "goes to each webhook that selects it by its name and account, and that was there when it happened",
    Effect.gen(function* () {
      const { here, to } = yield* setting()
      const first = yield* here.open()
      const second = yield* here.open()
      yield* here.webhooks.add({ url: "https://closed.example", names: ["account.closed"] })
      yield* here.webhooks.add({ url: "https://second.example", accountId: second })
      for (const account of [first, second]) yield* here.registration.close(account)
      yield* elapse(seconds(30))
      const got = (url: string) => to.posts.filter((post) => post.url === url).map(({ body }) => JSON.parse(body).data.account)
      expect(got(URL)).toHaveLength(4)
      expect(got("https://closed.example").toSorted()).toEqual([first, second].toSorted())
      expect(got("https://second.example")).toEqual([second])
    })
  )

  testing(
    "is told without the host's id of an account that was erased meanwhile",
    Effect.gen(function* () {
      const { here, to } = yield* setting()
      answers(to, 500)
      const account = yield* here.open()
      yield* elapse(seconds(1))
      yield* here.registration.erase(account)
      answers(to, 200)
      yield* elapse(seconds(30))
      const bodies = to.posts.map(({ body }) => JSON.parse(body).data.reference)
      expect(bodies[0]).toBe(`${here.name}-1`)
      expect(bodies.slice(1)).toEqual([undefined, undefined])
    })
  )
})

describe("a webhook that fails", () => {
  testing(
    "gets the notice again after each pause, a tenth shorter or longer, and then it is a dead letter that can be sent again",
    Effect.gen(function* () {
      const pauses = [seconds(5), minutes(5), minutes(30)]
      const { here, id, shared, to } = yield* setting({ pauses, ttl: "1 hour" })
      answers(to, 500)
      yield* here.open()
      for (const _ of range(40)) yield* elapse(minutes(1))
      const times = to.posts.map(({ at }) => at)
      expect(times).toHaveLength(4)
      for (const [i, pause] of pauses.entries()) {
        const waited = (times[i + 1] ?? 0) - (times[i] ?? 0)
        expect(waited).toBeGreaterThanOrEqual(pause * 0.9)
        // Time passes in steps of a minute here
        expect(waited).toBeLessThanOrEqual(pause * 1.1 + minutes(1))
      }
      expect(new Set(sent(to)).size).toBe(1)
      const [dead] = yield* here.run(Deliveries.dead(id, 10))
      expect(dead).toMatchObject({ attempts: 4, last: { status: 500, error: "it answered with status 500" } })
      expect(yield* here.run(Deliveries.condition(id))).toMatchObject({ waiting: 0, dead: 1, behind: false })
      answers(to, 200)
      const delivery = dead === undefined ? "" : Delivery.idOf(dead)
      yield* here.run(Deliveries.resend(delivery))
      expect(yield* Effect.flip(here.run(Deliveries.resend(delivery)))).toMatchObject({ _tag: "DeliveryNotFound" })
      yield* elapse(minutes(1))
      expect(to.posts).toHaveLength(5)
      expect(yield* here.run(Deliveries.condition(id))).toEqual({ waiting: 0, dead: 0, behind: false, failingSince: null })
      expect(yield* waiting(shared)).toBe(0)
    })
  )

  testing(
    "keeps its dead letters for a time, and so many of them at most: the newest",
    Effect.gen(function* () {
      const { here, id, to } = yield* setting({ pauses: [], deadLetterLimit: 10, keepDeadLetters: "1 hour", ttl: "10 minutes" })
      answers(to, 500)
      for (const _ of range(25)) yield* here.open()
      yield* elapse(minutes(1))
      const dead = yield* here.run(Deliveries.dead(id, 100))
      expect(dead).toHaveLength(10)
      expect(new Set(dead.map(({ notice }) => notice.id))).toEqual(new Set(sent(to).slice(-10)))
      expect(yield* here.run(Deliveries.resendAll(id, Date.parse(dead[7]?.notice.at ?? "") + 1))).toBe(0)
      yield* elapse(hours(1))
      expect(yield* here.run(Deliveries.dead(id, 100))).toEqual([])
    })
  )

  testing(
    "is asked again when it wants to be, and nothing else is sent until then",
    Effect.gen(function* () {
      const { here, to } = yield* setting({ ttl: "10 minutes" })
      answers(to, 503, minutes(2))
      yield* here.open()
      yield* elapse(seconds(1))
      answers(to, 200)
      yield* here.open()
      yield* elapse(seconds(115))
      expect(to.posts).toHaveLength(1)
      yield* elapse(seconds(20))
      expect(to.posts).toHaveLength(3)
    })
  )

  testing(
    "with 410 is disabled, and gets what it missed when it is enabled, unless that is skipped",
    Effect.gen(function* () {
      const { here, id, shared, to } = yield* setting()
      answers(to, 410)
      yield* here.open()
      yield* elapse(seconds(30))
      expect(yield* here.webhooks.show(id)).toMatchObject({ status: "disabled", disabled: { reason: "gone" } })
      yield* here.open()
      yield* elapse(seconds(30))
      expect(to.posts).toHaveLength(1)
      answers(to, 200)
      yield* here.webhooks.enable(id)
      yield* elapse(seconds(30))
      expect(sent(to).slice(1).toSorted()).toEqual([...(yield* openings(shared))].toSorted())
      yield* here.webhooks.disable(id)
      yield* elapse(seconds(10))
      yield* here.open()
      yield* here.webhooks.enable(id, { skip: true })
      yield* elapse(seconds(30))
      expect(to.posts).toHaveLength(3)
      yield* here.open()
      yield* elapse(seconds(30))
      expect(sent(to).at(-1)).toBe((yield* openings(shared)).at(-1))
      expect(to.posts).toHaveLength(4)
    })
  )

  testing(
    "every time for the time of the setting is disabled, and one that succeeds in between is not",
    Effect.gen(function* () {
      const { here, id, to } = yield* setting({ pauses: range(9).map(() => minutes(1)), disableAfter: "4 minutes" })
      answers(to, 500)
      yield* here.open()
      yield* elapse(minutes(2))
      answers(to, 200)
      yield* elapse(minutes(2))
      expect(yield* here.run(Deliveries.condition(id))).toMatchObject({ failingSince: null })
      to.answer = () => Effect.fail(new WebhookNotSent({ reason: "it does not answer" }))
      yield* here.open()
      yield* elapse(minutes(2))
      expect(yield* here.webhooks.show(id)).toMatchObject({ status: "enabled" })
      yield* elapse(minutes(5))
      expect(yield* here.webhooks.show(id)).toMatchObject({ status: "disabled", disabled: { reason: "failing" } })
    })
  )

  testing(
    "does not delay the others, and holds up only its own lane",
    Effect.gen(function* () {
      const { here, to } = yield* setting({ concurrency: 2 })
      yield* here.webhooks.add({ url: "https://hangs.example" })
      to.answer = ({ url }) => (url === URL ? Effect.succeed(OK) : Effect.never)
      for (const _ of range(5)) yield* here.open()
      yield* elapse(seconds(10))
      const got = (url: string) => to.posts.filter((post) => post.url === url).length
      expect([got(URL), got("https://hangs.example")]).toEqual([5, 2])
    })
  )
})

describe("many notices for a webhook that is down", () => {
  testing(
    "wait in the log: the state store holds only so many, and all arrive when it is back",
    Effect.gen(function* () {
      const { here, id, shared, to } = yield* setting({ waitingLimit: 6, ttl: "10 minutes" })
      to.answer = () => Effect.fail(new WebhookNotSent({ reason: "it does not answer" }))
      let most = 0
      for (const _ of range(10)) {
        for (const _ of range(5)) yield* here.open()
        yield* elapse(seconds(1))
        most = Math.max(most, yield* waiting(shared))
      }
      expect(most).toBe(6)
      expect(yield* here.run(Deliveries.condition(id))).toMatchObject({ waiting: 6, behind: true })
      to.posts.length = 0
      answers(to, 200)
      yield* elapse(minutes(6))
      expect(new Set(sent(to))).toEqual(new Set(yield* openings(shared)))
      expect(to.posts).toHaveLength(50)
      expect(yield* here.run(Deliveries.condition(id))).toEqual({ waiting: 0, dead: 0, behind: false, failingSince: null })
    })
  )
})

describe("a webhook", () => {
  testing(
    "signs with both secrets while they overlap, and shows neither again",
    Effect.gen(function* () {
      const { here, id, to } = yield* setting()
      const second = Redacted.value(yield* here.webhooks.rotate(id, "1 minute"))
      expect(second).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/u)
      yield* here.open()
      yield* elapse(seconds(10))
      expect(to.posts[0]?.secrets.map((secret) => Redacted.value(secret))).toEqual([second, expect.stringMatching(/^whsec_/u)])
      yield* elapse(minutes(1))
      yield* here.open()
      yield* elapse(seconds(10))
      expect(to.posts[1]?.secrets.map((secret) => Redacted.value(secret))).toEqual([second])
      const shown = JSON.stringify(yield* here.webhooks.show(id))
      expect(shown).not.toContain("whsec_")
    })
  )

  testing(
    "that is removed gets nothing more, and nothing is kept of it",
    Effect.gen(function* () {
      const { here, id, shared, to } = yield* setting({ pauses: ["1 second"] })
      answers(to, 500)
      for (const _ of range(3)) yield* here.open()
      yield* elapse(seconds(30))
      // One is being sent when it is removed
      to.answer = () => Effect.as(Effect.sleep(seconds(3)), { status: 500, retryAfter: undefined })
      yield* here.open()
      yield* elapse(seconds(1))
      yield* here.webhooks.remove(id)
      yield* here.webhooks.remove(id)
      yield* elapse(minutes(1))
      for (const space of [Delivery.WAITING, Delivery.DEAD, "webhookLanes"]) expect(yield* rowsOf(shared, space)).toEqual([])
      const before = to.posts.length
      yield* here.open()
      yield* elapse(minutes(1))
      expect(to.posts).toHaveLength(before)
      expect(yield* Effect.flip(here.webhooks.show(id))).toMatchObject({ _tag: "WebhookNotFound" })
      expect(yield* Effect.flip(here.vault.seal(`webhook:${id}`, "any", "text"))).toMatchObject({ _tag: "SubjectDestroyed" })
    })
  )

  testing(
    "is refused with a name that no notice has, or as one too many",
    Effect.gen(function* () {
      const { here } = yield* setting({ deliver: false })
      expect(yield* Effect.flip(here.webhooks.add({ url: URL, names: ["job.begun"] }))).toMatchObject({ _tag: "UnknownNotice" })
      for (const _ of range(99)) yield* here.webhooks.add({ url: URL })
      expect(yield* Effect.flip(here.webhooks.add({ url: URL }))).toMatchObject({ _tag: "TooManyWebhooks" })
      expect(yield* here.webhooks.ids).toHaveLength(100)
    })
  )

  testing(
    "whose key is missing, as after a restore without keys, fails like any other, and is shown without its address",
    Effect.gen(function* () {
      const { here, id, to } = yield* setting()
      yield* here.vault.destroy(`webhook:${id}`)
      yield* here.open()
      yield* elapse(seconds(2))
      expect(yield* here.webhooks.show(id)).toMatchObject({ url: null, status: "enabled" })
      const [waiting] = yield* here.run(Deliveries.waiting(id, 10))
      expect(waiting).toMatchObject({ attempts: 1, last: { status: null, error: "its address cannot be opened" } })
      expect(to.posts).toEqual([])
    })
  )

  testing(
    "can be tried at once, and tells what was answered",
    Effect.gen(function* () {
      const { here, id, to } = yield* setting({ deliver: false })
      answers(to, 404)
      const trial: Host["webhooks"]["test"] = here.webhooks.test
      expect(yield* trial(id)).toMatchObject({ _tag: "Success", success: { status: 404 } })
      expect(JSON.parse(to.posts[0]?.body ?? "")).toMatchObject({ type: "webhook.test", data: { webhook: id } })
    })
  )
})

describe("a host that stops", () => {
  testing(
    "lets what it sends end, and records it",
    Effect.gen(function* () {
      const shared = yield* stores
      const to = receivers()
      to.answer = () => Effect.as(Effect.sleep(seconds(3)), OK)
      const closing = Effect.scoped(
        Effect.gen(function* () {
          const here = yield* host(shared, to, { drain: "5 seconds" })
          yield* here.webhooks.add({ url: URL })
          yield* here.open()
          yield* elapse(seconds(1))
        })
      )
      const fiber = yield* Effect.forkChild(closing)
      yield* elapse(seconds(2))
      yield* elapse(seconds(3))
      yield* Fiber.join(fiber)
      expect(to.posts).toHaveLength(1)
      expect(yield* waiting(shared)).toBe(0)
    })
  )
})
