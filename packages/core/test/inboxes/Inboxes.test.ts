/** Inboxes over one and two hosts: who sees them, what they receive, and how they end. */
import { Aggregate, EventStore } from "@millrace/event-sourcing"
import { Clock, Effect, Fiber, Stream } from "effect"
import { describe, expect } from "vitest"
import { Inboxes } from "../../src/inboxes/Inboxes.ts"
import type * as Letters from "../../src/inboxes/Letters.ts"
import { isUnreadable } from "../../src/inboxes/MailReader.ts"
import { Account } from "../../src/ledger/Account.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import * as TempMail from "../../src/operations/TempMail.ts"
import { ofAccount } from "../../src/vault/Vault.ts"
import { all, elapse, hours, patiently, quiet, range, seconds } from "../billing/Bench.ts"
import { outcome } from "../vault/Vaults.ts"
import { ALICE, ALL, BOB, DOMAIN, host, incoming, LARGE, shared, stored, story, subjects, testing } from "./InboxBench.ts"
import * as PlainReader from "./PlainReader.ts"

const SUMMARY: Letters.Summary = {
  from: { name: null, address: "anna@example.com" },
  subject: "Hello",
  hasAttachments: false,
  sender: null,
  authentication: { spf: null, dkim: null, dmarc: null, arc: null }
}

/** Joins a caller who waits. That takes no more than moments: nobody is woken by the end of the wait. */
const joinSoon = Effect.fnUntraced(function* <A, E>(waiting: Fiber.Fiber<A, E>) {
  const before = yield* Clock.currentTimeMillis
  const answer = yield* patiently(Fiber.join(waiting), 1)
  expect((yield* Clock.currentTimeMillis) - before).toBeLessThan(seconds(5))
  return answer
})

describe("an inbox", () => {
  testing(
    "receives a message, which its account reads whole, with its attachment and as it came",
    Effect.gen(function* () {
      const here = yield* host(yield* shared)
      const inbox = yield* here.create(ALICE, { label: "sign-up" })
      const message = incoming("Welcome")
      yield* here.receiver.accepts(inbox.address.toUpperCase(), message.raw.length)
      yield* here.receiver.receive(inbox.address.toUpperCase(), message)
      expect(yield* here.inboxes.show(inbox)).toMatchObject({ label: "sign-up", messages: 1 })
      const { messages, total } = yield* here.inboxes.list(inbox, ALL)
      expect([total, messages]).toMatchObject([1, [{ size: message.raw.length, summary: { subject: "Welcome", hasAttachments: true } }]])
      const id = messages[0]?.messageId ?? ""
      const read = yield* here.inboxes.content(inbox, id)
      expect(read).toMatchObject({
        content: { subject: "Welcome", text: "Hello\r\n" },
        summary: { authentication: message.authentication }
      })
      expect(Buffer.from((yield* here.inboxes.attachment(inbox, id, 0)).bytes).toString()).toBe("notes")
      expect(yield* outcome(here.inboxes.attachment(inbox, id, 1))).toBe("MessageNotFound")
      const raw = yield* Stream.runCollect(yield* here.inboxes.letters.bytes(inbox, read))
      expect(Buffer.concat(raw)).toEqual(Buffer.from(message.raw))
    })
  )

  testing(
    "keeps small and large messages as they came, and gives any range of them; only large ones are blobs",
    Effect.gen(function* () {
      const to = yield* shared
      const { create, inboxes } = yield* host(to)
      const inbox = yield* create()
      const { expiresAt } = yield* inboxes.show(inbox)
      for (const size of [0, 1, 32_768, 32_769, 100_000]) {
        const blobs = (yield* Stream.runCollect(to.blobs.list)).length
        const raw = Buffer.from(Uint8Array.from({ length: size }, (_, i) => i % 251))
        const { blobId, sealedSummary } = yield* inboxes.letters.keep({ ...inbox, expiresAt }, raw, SUMMARY)
        expect(yield* inboxes.letters.summary(inbox, { sealedSummary })).toEqual(SUMMARY)
        expect((yield* Stream.runCollect(to.blobs.list)).length - blobs).toBe(size > 32_768 ? 1 : 0)
        expect(yield* inboxes.letters.raw(inbox, { blobId })).toEqual(raw)
        for (const [offset, length] of [
          [0, 0],
          [0, size],
          [1, 1],
          [size >> 1, size],
          [size, 1],
          [size + 1, 1],
          [7, undefined]
        ] as const) {
          const bytes = yield* inboxes.letters.bytes(inbox, { blobId }, { offset, ...(length === undefined ? {} : { length }) })
          const end = length === undefined ? size : offset + length
          expect(Buffer.concat(yield* Stream.runCollect(bytes))).toEqual(raw.subarray(offset, end))
        }
        yield* inboxes.letters.drop(inbox, blobId)
        expect(yield* outcome(inboxes.letters.raw(inbox, { blobId }))).toBe("BlobNotFound")
      }
      expect(yield* stored(to)).toEqual([])
      expect(yield* to.states.list("inboxFiles")).toEqual([])
    })
  )

  testing(
    "is found again by the call that created it, if its process died, and not once it is gone",
    Effect.gen(function* () {
      const here = yield* host(yield* shared)
      const inbox = yield* here.create()
      const { recover } = TempMail.create
      if (recover === undefined) throw new Error("A creation is recovered")
      const found = (reservationId: string) => Effect.provideService(recover(reservationId), Inboxes, here.inboxes)
      const reservationId = inbox.inboxId.replace("inbox_", "res_")
      expect(yield* found(reservationId)).toMatchObject({ data: { inbox_id: inbox.inboxId, address: inbox.address } })
      expect(yield* found("res_01ARZ3NDEKTSV4RRFFQ69G5FAV")).toBeUndefined()
      yield* here.inboxes.remove(inbox)
      expect(yield* found(reservationId)).toBeUndefined()
    })
  )

  testing(
    "is not there for another account, whatever that asks",
    Effect.gen(function* () {
      const here = yield* host(yield* shared)
      const { address, inboxId } = yield* here.create(ALICE)
      yield* here.receiver.receive(address, incoming("Private"))
      const [message] = (yield* here.inboxes.find(ALICE, inboxId)).messages
      const bobs = { accountId: BOB, inboxId }
      const id = message?.messageId ?? ""
      const { attachment, content, list, remove, rotate, show } = here.inboxes
      const asks = [outcome(show(bobs)), outcome(list(bobs, ALL)), outcome(content(bobs, id)), outcome(attachment(bobs, id, 0))]
      expect(yield* Effect.all([...asks, outcome(rotate(bobs)), outcome(remove(bobs))])).toEqual(range(6).map(() => "InboxNotFound"))
      for (const inboxId of ["", "inbox_", "inbox_01ARZ3NDEKTSV4RRFFQ69G5FAV"])
        expect(yield* outcome(show({ accountId: ALICE, inboxId }))).toBe("InboxNotFound")
      expect(yield* subjects(here, { accountId: ALICE, inboxId })).toEqual(["Private"])
    })
  )

  testing(
    "receives a message once under its queue id, however often and wherever it is delivered",
    Effect.gen(function* () {
      const to = yield* shared
      const [here, there] = [yield* host(to), yield* host(to)]
      const inbox = yield* here.create()
      const message = incoming("Once")
      yield* Effect.all(
        [here, there, here, there].map(({ receiver }) => receiver.receive(inbox.address, message)),
        all
      )
      yield* there.receiver.receive(inbox.address, message)
      expect(yield* subjects(here, inbox)).toEqual(["Once"])
      expect(yield* stored(to)).toHaveLength(1)
      // Another message of the same bytes
      yield* here.receiver.receive(inbox.address, incoming("Once"))
      expect(yield* subjects(there, inbox)).toEqual(["Once", "Once"])
    })
  )

  testing(
    "is full at its bounds, also under concurrent deliveries",
    Effect.gen(function* () {
      const to = yield* shared
      const [here, there] = [yield* host(to), yield* host(to)]
      const inbox = yield* here.create()
      const attempts = range(105).map((i) => (i % 2 ? here : there).receiver.receive(inbox.address, incoming(`Message ${i}`)))
      const ends = yield* Effect.all(attempts.map(outcome), all)
      expect(ends.filter((end) => end === "InboxFull")).toHaveLength(5)
      expect(yield* stored(to)).toHaveLength(100)
      expect(yield* outcome(here.receiver.accepts(inbox.address, 1))).toBe("InboxFull")
      const small = yield* here.create()
      expect(yield* outcome(here.receiver.accepts(small.address, 26_214_401))).toBe("InboxFull")
      expect(yield* outcome(here.receiver.accepts(small.address, 26_214_400))).toBeUndefined()
    })
  )

  testing(
    "keeps a message that cannot be read, and shows it as such",
    Effect.gen(function* () {
      const here = yield* host(yield* shared)
      const inbox = yield* here.create()
      yield* here.receiver.receive(inbox.address, incoming("", { raw: Buffer.from("X-Broken: yes\r\n\r\n") }))
      const { messages } = yield* here.inboxes.list(inbox, ALL)
      expect(messages).toMatchObject([{ summary: { from: null, subject: null, hasAttachments: false } }])
      expect(isUnreadable((yield* here.inboxes.content(inbox, messages[0]?.messageId ?? "")).content)).toBe(true)
    })
  )

  testing(
    "keeps no more of long headers than a list needs",
    Effect.gen(function* () {
      const to = yield* shared
      const here = yield* host(to)
      const inbox = yield* here.create()
      yield* here.receiver.receive(inbox.address, incoming("x".repeat(1_000_000), { sender: "y".repeat(1_000_000) }))
      const [message] = (yield* here.inboxes.find(ALICE, inbox.inboxId)).messages
      expect(message?.sealedSummary.length).toBeLessThan(5_000)
      expect((yield* subjects(here, inbox))[0]).toHaveLength(500)
    })
  )
})

describe("a rotation", () => {
  testing(
    "refuses the address before at once, at all hosts, and keeps messages and expiry",
    Effect.gen(function* () {
      const to = yield* shared
      const [here, there] = [yield* host(to), yield* host(to)]
      const inbox = yield* here.create()
      const message = incoming("Before")
      yield* there.receiver.receive(inbox.address, message)
      const before = yield* here.inboxes.show(inbox)
      yield* here.inboxes.rotate(inbox)
      const after = yield* there.inboxes.show(inbox)
      expect(after).toEqual({ ...before, address: after.address })
      expect(after.address).not.toBe(before.address)
      for (const { receiver } of [there, here]) {
        expect(yield* outcome(receiver.accepts(before.address, 1))).toBe("UnknownAddress")
        expect(yield* outcome(receiver.receive(before.address, incoming("Late")))).toBe("UnknownAddress")
        // What was taken is acknowledged again
        yield* receiver.receive(before.address, message)
        yield* receiver.receive(after.address, incoming("After"))
      }
      expect(yield* subjects(here, inbox)).toEqual(["After", "After", "Before"])
    })
  )
})

describe("what is listed", () => {
  testing(
    "is the newest first, by pages, and after a time or a message",
    Effect.gen(function* () {
      const here = yield* host(yield* shared)
      const inbox = yield* here.create()
      for (const i of range(5)) {
        yield* here.receiver.receive(inbox.address, incoming(`${i}`))
        yield* elapse(seconds(1))
      }
      const { messages } = yield* here.inboxes.list(inbox, ALL)
      const subjectsOf = (options: object) =>
        Effect.map(here.inboxes.list(inbox, { ...ALL, ...options }), ({ messages, total }) => [
          total,
          messages.map(({ summary }) => summary.subject).join("")
        ])
      expect(yield* subjectsOf({})).toEqual([5, "43210"])
      expect(yield* subjectsOf({ page: 2, perPage: 2 })).toEqual([5, "21"])
      expect(yield* subjectsOf({ since: messages[2]?.receivedAt })).toEqual([2, "43"])
      expect(yield* subjectsOf({ since: messages[1]?.messageId })).toEqual([1, "4"])
      expect(yield* subjectsOf({ since: messages[0]?.messageId })).toEqual([0, ""])
      expect(yield* outcome(subjectsOf({ since: "msg_other" }))).toBe("MessageNotFound")
    })
  )

  testing(
    "comes as soon as a message arrives at another host, to a caller that waits",
    Effect.gen(function* () {
      const to = yield* shared
      const [here, there] = [yield* host(to), yield* host(to)]
      const inbox = yield* here.create()
      const other = yield* here.create()
      const waiting = yield* Effect.forkChild(here.inboxes.list(inbox, { ...ALL, wait: "30 seconds" }))
      yield* elapse(seconds(10))
      expect(here.inboxes.waiting()).toBe(1)
      yield* there.receiver.receive(other.address, incoming("Elsewhere"))
      yield* quiet
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* there.receiver.receive(inbox.address, incoming("Code 123456"))
      const { messages } = yield* joinSoon(waiting)
      expect(messages.map(({ summary }) => summary.subject)).toEqual(["Code 123456"])
      expect(here.inboxes.waiting()).toBe(0)
      // What is there is not waited for
      expect((yield* here.inboxes.list(inbox, { ...ALL, wait: "30 seconds" })).total).toBe(1)
    })
  )

  testing(
    "is empty after the wait, and not found where the inbox ends meanwhile",
    Effect.gen(function* () {
      const to = yield* shared
      const [here, there] = [yield* host(to), yield* host(to)]
      const inbox = yield* here.create()
      const waiting = yield* Effect.forkChild(here.inboxes.list(inbox, { ...ALL, wait: "30 seconds" }))
      yield* elapse(seconds(30))
      expect(yield* Fiber.join(waiting)).toEqual({ messages: [], total: 0 })
      const ended = yield* Effect.forkChild(outcome(here.inboxes.list(inbox, { ...ALL, wait: "30 seconds" })))
      yield* elapse(seconds(1))
      yield* there.inboxes.remove(inbox)
      expect(yield* joinSoon(ended)).toBe("InboxNotFound")
      expect(here.inboxes.waiting()).toBe(0)
    })
  )
})

describe("the end of an inbox", () => {
  testing(
    "is true from its instant on, and written by a deadline, which destroys its key and its files",
    Effect.gen(function* () {
      const to = yield* shared
      const here = yield* host(to, { upkeep: { sweepEvery: "1 hour" } })
      const inbox = yield* here.create(ALICE, { lifetime: 60 })
      yield* here.receiver.receive(inbox.address, incoming("Soon gone"))
      yield* elapse(seconds(60) - 1)
      expect(yield* subjects(here, inbox)).toEqual(["Soon gone"])
      expect(yield* story(to)).not.toContain("InboxExpired")
      yield* elapse(1)
      expect(yield* outcome(here.inboxes.show(inbox))).toBe("InboxNotFound")
      expect(yield* outcome(here.receiver.receive(inbox.address, incoming("Late")))).toBe("UnknownAddress")
      yield* elapse(seconds(1))
      expect((yield* story(to)).filter((type) => type === "InboxExpired")).toHaveLength(1)
      expect(yield* stored(to)).toEqual([])
      expect(yield* to.states.list("inboxFiles")).toEqual([])
      expect((yield* to.states.list("vaultKeys")).map(({ key }) => key)).not.toContain(`inbox:${inbox.inboxId}`)
    })
  )

  testing(
    "is written after a restart, if no host was there at its instant",
    Effect.gen(function* () {
      const to = yield* shared
      const inbox = yield* Effect.scoped(Effect.flatMap(host(to), ({ create }) => create(ALICE, { lifetime: 60 })))
      yield* elapse(hours(1))
      expect(yield* story(to)).toEqual(["AddressClaimed", "InboxCreated"])
      const there = yield* host(to)
      yield* elapse(seconds(40))
      expect(yield* story(to)).toContain("InboxExpired")
      expect(yield* outcome(there.inboxes.show(inbox))).toBe("InboxNotFound")
    })
  )

  testing(
    "by deletion happens once, and its address is never given or received for again",
    Effect.gen(function* () {
      const to = yield* shared
      const [here, there] = [yield* host(to), yield* host(to)]
      const inbox = yield* here.create()
      yield* here.receiver.receive(inbox.address, incoming("Gone"))
      const ends = yield* Effect.all(
        [here, there, here].map(({ inboxes }) => outcome(inboxes.remove(inbox))),
        all
      )
      expect(ends.filter((end) => end === "InboxNotFound")).toHaveLength(2)
      expect((yield* story(to)).filter((type) => type === "InboxDeleted")).toHaveLength(1)
      expect(yield* stored(to)).toEqual([])
      for (const { receiver } of [here, there]) expect(yield* outcome(receiver.accepts(inbox.address, 1))).toBe("UnknownAddress")
      yield* elapse(hours(2))
      expect(yield* story(to)).not.toContain("InboxExpired")
    })
  )

  testing(
    "of its account ends it, too: nothing can be read or received any more",
    Effect.gen(function* () {
      const to = yield* shared
      const here = yield* host(to)
      const inbox = yield* here.create()
      const bobs = yield* here.create(BOB)
      yield* here.receiver.receive(inbox.address, incoming("Erased"))
      const [message] = (yield* here.inboxes.find(ALICE, inbox.inboxId)).messages
      yield* here.vault.destroy(ofAccount(ALICE))
      const { content, list, show } = here.inboxes
      const asks = [outcome(show(inbox)), outcome(list(inbox, ALL)), outcome(content(inbox, message?.messageId ?? ""))]
      expect(yield* Effect.all(asks)).toEqual(range(3).map(() => "SubjectDestroyed"))
      expect(yield* outcome(here.receiver.accepts(inbox.address, 1))).toBe("UnknownAddress")
      expect(yield* outcome(here.receiver.receive(inbox.address, incoming("Late")))).toBe("UnknownAddress")
      yield* here.receiver.receive(bobs.address, incoming("Still here"))
      expect(yield* subjects(here, bobs)).toEqual(["Still here"])
      yield* elapse(hours(2))
      expect(yield* stored(to)).toEqual([])
    })
  )

  testing(
    "comes with the end of its account: its key and its files go at once, and those of others stay",
    Effect.gen(function* () {
      const to = yield* shared
      const [here, there] = [yield* host(to), yield* host(to)]
      const [one, other] = [yield* here.create(), yield* there.create()]
      const bobs = yield* here.create(BOB)
      for (const { address } of [one, other, bobs]) yield* here.receiver.receive(address, incoming("Soon gone"))
      yield* there.inboxes.remove(other)
      const ledger = yield* Aggregate.make(Account).pipe(Effect.provideService(EventStore.EventStore, to.events))
      yield* ledger.execute(ALICE, Decisions.open({}))
      yield* elapse(seconds(1))
      expect(yield* subjects(there, one)).toEqual(["Soon gone"])
      yield* ledger.execute(ALICE, Decisions.close)
      yield* here.vault.destroy(ofAccount(ALICE))
      yield* elapse(seconds(1))
      expect((yield* story(to)).filter((type) => type === "InboxDeleted")).toHaveLength(2)
      expect(yield* stored(to)).toHaveLength(1)
      expect((yield* to.states.list("vaultKeys")).map(({ key }) => key)).toEqual([ofAccount(BOB), `inbox:${bobs.inboxId}`])
      expect(yield* outcome(here.receiver.accepts(one.address, 1))).toBe("UnknownAddress")
      expect(yield* subjects(here, bobs)).toEqual(["Soon gone"])
    })
  )

  testing(
    "leaves nothing behind: the sweep removes files that no message names",
    Effect.gen(function* () {
      const to = yield* shared
      const here = yield* host(to, { upkeep: { ttl: "12 hours", sweepFilesEvery: "6 hours" } })
      const inbox = yield* here.create(ALICE, { lifetime: 86_400 })
      const large = PlainReader.message("Large", "x".repeat(LARGE))
      yield* here.receiver.receive(inbox.address, incoming("Named"))
      yield* here.receiver.receive(inbox.address, incoming("Named", { raw: large }))
      // Deliveries that died before their events
      const { letters } = here.inboxes
      const { expiresAt } = yield* here.inboxes.show(inbox)
      const strays = yield* Effect.forEach([PlainReader.message("Stray"), large], (raw) =>
        letters.keep({ ...inbox, expiresAt }, raw, SUMMARY)
      )
      expect(yield* stored(to)).toEqual(expect.arrayContaining(strays.map(({ blobId }) => blobId)))
      for (const _ of range(4)) yield* elapse(hours(5))
      expect(yield* stored(to)).toHaveLength(4)
      for (const _ of range(4)) yield* elapse(hours(6))
      expect(yield* stored(to)).toEqual([])
      expect(yield* to.states.list("inboxFiles")).toEqual([])
    })
  )
})

describe("an address that nobody has", () => {
  testing(
    "is refused, and so is what is no address",
    Effect.gen(function* () {
      const here = yield* host(yield* shared)
      for (const address of [`tibarole-kefosani-demoza@${DOMAIN}`, "postmaster", "", "a@b@c", `x@${DOMAIN}\r\nRCPT TO:<y>`])
        for (const ask of [here.receiver.accepts(address, 1), here.receiver.receive(address, incoming("No"))])
          expect(yield* outcome(ask)).toBe("UnknownAddress")
    })
  )
})
