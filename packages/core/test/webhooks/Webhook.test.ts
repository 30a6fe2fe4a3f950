import { Result } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Arbitraries from "../../../testing/src/Arbitraries.ts"
import { given } from "../../../testing/src/GivenWhenThen.ts"
import * as Webhook from "../../src/webhooks/Webhook.ts"

const ID = "wh_01ARZ3NDEKTSV4RRFFQ69G5FAV"
const ADDED = { sealedUrl: "url", sealedSecret: "secret 1", names: null, accountId: null, sealedLabel: null }
const NOW = Date.UTC(2026, 0, 1)

type Decide = (webhook: Webhook.Webhook, now: number) => Result.Result<ReadonlyArray<Webhook.WebhookEvent>, unknown>

/** Acts of an administrator. Only `add` needs a webhook that is absent. */
const act: fc.Arbitrary<Decide> = fc.oneof(
  fc.constant(Webhook.change(ID, { names: ["job.ended"] })),
  fc.constant(Webhook.change(ID, {})),
  fc.nat(100).map((overlap) => Webhook.rotate(ID, `secret ${overlap}`, overlap)),
  fc.constantFrom(...Webhook.DisabledReason.literals).map((reason) => Webhook.disable(ID, reason)),
  fc.boolean().map((skip) => Webhook.enable(ID, skip)),
  fc.constant(Webhook.remove(ID))
)

const after = (decides: ReadonlyArray<Decide>) => {
  let state: Webhook.Webhook = Webhook.Webhook.initial
  const events: Array<Webhook.WebhookEvent> = []
  for (const [i, decide] of [Webhook.add(ADDED), ...decides].entries()) {
    const decided = decide(state, NOW + i)
    for (const event of Result.isSuccess(decided) ? decided.success : []) {
      state = Webhook.Webhook.evolve(state, event, NOW + i)
      events.push(event)
    }
  }
  return { state, events }
}

describe("a webhook", () => {
  test("takes every act in every order, and none once it was removed", () => {
    fc.assert(
      fc.property(fc.array(act, { maxLength: 12 }), act, (acts, last) => {
        const { events, state } = after(acts)
        const removals = events.filter(({ _tag }) => _tag === "WebhookRemoved").length
        expect(removals).toBe(state.status === "removed" ? 1 : 0)
        if (state.status === "removed") expect(Webhook.remove(ID)(state)).toEqual(Result.succeed([]))
        expect(Result.isFailure(Webhook.change(ID, {})(state, NOW))).toBe(state.status === "removed")
        expect(after([...acts, Webhook.remove(ID), last]).state).toEqual({ status: "removed" })
      })
    )
  })

  test("is neither disabled nor enabled twice by a log", () => {
    const { evolve, initial } = Webhook.Webhook
    const added = evolve(initial, { _tag: "WebhookAdded", ...ADDED }, NOW)
    const disabled = evolve(added, { _tag: "WebhookDisabled", reason: "gone" }, NOW)
    expect(() => evolve(disabled, { _tag: "WebhookDisabled", reason: "gone" }, NOW)).toThrow("not disabled again")
    expect(() => evolve(added, { _tag: "WebhookEnabled" }, NOW)).toThrow("not enabled again")
    expect(evolve(added, { _tag: "WebhookEnabled", skipped: true }, NOW)).toMatchObject({ status: "enabled" })
  })

  test("that is not there is not found", () => {
    for (const decide of [
      Webhook.change(ID, {}),
      Webhook.rotate(ID, "", 0),
      Webhook.disable(ID, "host"),
      Webhook.enable(ID, true),
      Webhook.remove(ID)
    ])
      given(Webhook.Webhook, [])
        .when(decide)
        .thenRefused(new Webhook.WebhookNotFound({ webhook: ID }))
  })

  test("signs with the secret before the newest until its time is over", () => {
    const { state } = after([Webhook.rotate(ID, "secret 2", 1_000)])
    if (!Webhook.isPresent(state)) throw new Error("It is present")
    expect(Webhook.signing(state, NOW + 1_000)).toEqual(["secret 2", "secret 1"])
    expect(Webhook.signing(state, NOW + 1_001)).toEqual(["secret 2"])
  })

  test("that is disabled twice keeps its first reason, and is enabled once", () => {
    const { state, events } = after([Webhook.disable(ID, "gone"), Webhook.disable(ID, "host")])
    expect(state).toMatchObject({ status: "disabled", disabled: { reason: "gone", at: NOW + 1 } })
    expect(events).toHaveLength(2)
    expect(after([Webhook.disable(ID, "gone"), Webhook.enable(ID, false), Webhook.enable(ID, false)]).events).toHaveLength(3)
  })

  test("has events that survive their encoding", () => {
    const { codec } = Webhook.Webhook
    const event = Arbitraries.arbitraryOf(Webhook.WebhookEvent).map((event): Webhook.WebhookEvent => JSON.parse(JSON.stringify(event)))
    fc.assert(
      fc.property(event, (event) => {
        const { data, type } = codec.encode(event)
        expect(codec.decode(type, data)).toEqual(event)
      })
    )
  })
})
