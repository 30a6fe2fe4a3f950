import { Result } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { at, given } from "../../../testing/src/GivenWhenThen.ts"
import * as Inbox from "../../src/inboxes/Inbox.ts"
import * as InboxAddress from "../../src/inboxes/InboxAddress.ts"

const ID = "inbox_01ARZ3NDEKTSV4RRFFQ69G5FAV"
const NOW = Date.UTC(2026, 0, 1)
const LIFETIME = 100
const CREATED = { accountId: "a", addressHash: "x0", sealedAddress: "x0", sealedLabel: null, expiresAt: NOW + LIFETIME }
const MiB = 1024 * 1024

const address = (addressHash: string) => ({ addressHash, sealedAddress: addressHash })
const message = (messageId: string, addressHash = "x0", size = 1) => ({ messageId, addressHash, size, blobId: "b", sealedSummary: "" })

type Decide = (inbox: Inbox.Inbox, now: number) => Result.Result<ReadonlyArray<Inbox.InboxEvent>, unknown>

/** An act, and the milliseconds before it. */
const act: fc.Arbitrary<{ readonly wait: number; readonly decide: Decide }> = fc.record({
  wait: fc.constantFrom(0, 1, 10, LIFETIME),
  decide: fc.oneof(
    {
      arbitrary: fc
        .tuple(fc.nat(9), fc.nat(2), fc.constantFrom(0, 1, 9 * MiB))
        .map(([id, to, size]) => Inbox.receive(message(`m${id}`, `x${to}`, size))),
      weight: 6
    },
    { arbitrary: fc.nat(2).map((to) => Inbox.rotate(ID, address(`x${to}`))), weight: 2 },
    { arbitrary: fc.constant<Decide>(Inbox.expire), weight: 2 },
    { arbitrary: fc.constant<Decide>(Inbox.remove(ID)), weight: 1 },
    { arbitrary: fc.constant<Decide>(Inbox.create(CREATED)), weight: 1 }
  )
})

const run = (acts: ReadonlyArray<{ readonly wait: number; readonly decide: Decide }>) => {
  let now = NOW
  let inbox: Inbox.Inbox = Inbox.Inbox.initial
  const steps = [{ wait: 0, decide: Inbox.create(CREATED) as Decide }, ...acts].map(({ decide, wait }) => {
    now += wait
    const before = inbox
    const decided = decide(before, now)
    const events = Result.isSuccess(decided) ? decided.success : []
    // The fold takes whatever is decided
    for (const event of events) inbox = Inbox.Inbox.evolve(inbox, event, now)
    return { at: now, before, after: inbox, events, again: decide(inbox, now) }
  })
  return { inbox, steps, now }
}

describe("an inbox", () => {
  test("receives within its bounds, at its address and in its lifetime only, and ends once", () => {
    fc.assert(
      fc.property(fc.array(act, { maxLength: 30 }), (acts) => {
        const { inbox, steps } = run(acts)
        const events = steps.flatMap(({ events }) => events)
        const ends = events.filter(({ _tag }) => _tag === "InboxDeleted" || _tag === "InboxExpired")
        expect(ends).toHaveLength(inbox.status === "active" ? 0 : 1)
        for (const { after, at, before, events } of steps)
          for (const event of events) {
            if (event._tag !== "InboxCreated") expect(before.status).toBe("active")
            if (event._tag === "InboxExpired") expect(at).toBeGreaterThanOrEqual(CREATED.expiresAt)
            else expect(at).toBeLessThan(CREATED.expiresAt)
            if (event._tag !== "MessageReceived" || before.status !== "active" || after.status !== "active") continue
            expect(event.addressHash).toBe(before.addressHash)
            expect(before.messages.map(({ messageId }) => messageId)).not.toContain(event.messageId)
            expect(after.bytes).toBe(after.messages.reduce((sum, { size }) => sum + size, 0))
            expect(after.bytes).toBeLessThanOrEqual(Inbox.MAX_BYTES)
          }
      })
    )
  })

  test("decides nothing new when an act is repeated at once", () => {
    fc.assert(
      fc.property(fc.array(act, { maxLength: 20 }), (acts) => {
        for (const { again, events } of run(acts).steps) if (events.length > 0 && Result.isSuccess(again)) expect(again.success).toEqual([])
      })
    )
  })

  test("takes a hundred messages, or 25 MiB, and not one more", () => {
    const many = Array.from({ length: Inbox.MAX_MESSAGES }, (_, i) => ({ _tag: "MessageReceived" as const, ...message(`m${i}`) }))
    const created = { _tag: "InboxCreated" as const, ...CREATED }
    const full = given(
      Inbox.Inbox,
      [created, ...many].map((event) => at(NOW, event))
    )
    full.when(Inbox.receive(message("one more"))).thenRefused(new Inbox.NoRoom())
    full.when(Inbox.receive(message("m7"))).then([])
    const large = { _tag: "MessageReceived" as const, ...message("large", "x0", 24 * MiB) }
    const heavy = given(Inbox.Inbox, [at(NOW, created), at(NOW, large)])
    heavy.when(Inbox.receive(message("fits", "x0", MiB))).then([{ _tag: "MessageReceived", ...message("fits", "x0", MiB) }])
    heavy.when(Inbox.receive(message("not", "x0", MiB + 1))).thenRefused(new Inbox.NoRoom())
    expect(() =>
      Inbox.Inbox.evolve(
        [created, ...many].reduce<Inbox.Inbox>((inbox, event) => Inbox.Inbox.evolve(inbox, event, NOW), { status: "absent" }),
        { _tag: "MessageReceived", ...message("one more") },
        NOW
      )
    ).toThrow("full")
  })

  test("is gone from the instant of its expiry on, before that is written", () => {
    const created = given(Inbox.Inbox, [at(NOW, { _tag: "InboxCreated", ...CREATED })])
    const last = CREATED.expiresAt - 1
    created.when(Inbox.expire, last).then([])
    created.when(Inbox.receive(message("m")), last).then([{ _tag: "MessageReceived", ...message("m") }])
    const gone = new Inbox.InboxNotFound({ inboxId: ID })
    created.when(Inbox.receive(message("m")), CREATED.expiresAt).thenRefused(new Inbox.NotAddressed())
    created.when(Inbox.rotate(ID, address("x1")), CREATED.expiresAt).thenRefused(gone)
    created.when(Inbox.remove(ID), CREATED.expiresAt).thenRefused(gone)
    created.when(Inbox.expire, CREATED.expiresAt).then([{ _tag: "InboxExpired" }])
  })

  test("that a log lets receive after its end, elsewhere, or twice is refused", () => {
    const { evolve, initial } = Inbox.Inbox
    const created = evolve(initial, { _tag: "InboxCreated", ...CREATED }, NOW)
    const received = { _tag: "MessageReceived" as const, ...message("m") }
    expect(() => evolve(evolve(created, { _tag: "InboxDeleted" }, NOW), received, NOW)).toThrow("deleted")
    expect(() => evolve(created, received, CREATED.expiresAt)).toThrow("after its expiry")
    expect(() => evolve(created, { ...received, addressHash: "x1" }, NOW)).toThrow("to the address")
    expect(() => evolve(evolve(created, received, NOW), received, NOW)).toThrow("received once")
    expect(() => evolve(created, { _tag: "InboxExpired" }, CREATED.expiresAt - 1)).toThrow("at its time")
    expect(() => evolve(created, { _tag: "InboxCreated", ...CREATED }, NOW)).toThrow("created first, and once")
  })
})

describe("an address", () => {
  test("is pronounceable, has every bit of its random bytes that it uses, and is an address", () => {
    const bytes = fc.uint8Array({ minLength: 11, maxLength: 11 })
    const made = (from: Uint8Array) => {
      const rest = [...from]
      return InboxAddress.generate((size) => Uint8Array.from(rest.splice(0, size)), "mail.example.com")
    }
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        expect(made(a)).toMatch(
          /^(?:[b-df-hj-np-tv-z][aeio]){4}-(?:[b-df-hj-np-tv-z][aeio]){4}-(?:[b-df-hj-np-tv-z][aeio]){3}@mail\.example\.com$/u
        )
        const differ = a.some((byte, i) => ((byte ^ (b[i] ?? 0)) & 63) !== 0)
        expect(made(a) !== made(b)).toBe(differ)
      })
    )
    // Eleven syllables of six bits
    expect(Math.log2(64 ** 11)).toBeGreaterThan(60)
  })

  test("is claimed once, by whoever comes first", () => {
    const claimed = { _tag: "AddressClaimed" as const, inboxId: "a" }
    given(InboxAddress.AddressClaim, []).when(InboxAddress.claim("a")).then([claimed])
    for (const inboxId of ["a", "b"])
      given(InboxAddress.AddressClaim, [at(NOW, claimed)])
        .when(InboxAddress.claim(inboxId))
        .thenRefused(new InboxAddress.AddressTaken())
    expect(() => InboxAddress.AddressClaim.evolve({ inboxId: "a" }, claimed, NOW)).toThrow("one inbox for ever")
  })
})
