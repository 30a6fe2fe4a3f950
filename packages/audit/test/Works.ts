/**
 * Waits, inboxes and proxy sessions of random histories, with the calls that pay for them, by the real deciders. Calls stop between any two
 * steps, and what they leave may come after their hold has ended, as crashes and appends in doubt leave it.
 */
import { Credits, Decisions, Inbox, InboxAddress, Ledger, PricePlan, ProxySession, Sms, Verification } from "@millrace/core"
import { Aggregate } from "@millrace/event-sourcing"
import { Clock, Effect } from "effect"
import { CREATE_INBOX, OPEN_SESSION, ROTATE_INBOX, WAIT } from "../src/CallIndex.ts"
import type { Dice } from "./Histories.ts"

/** The account of these calls. */
export const workerId = "acc_01JE"

const NUMBERS = ["+15005550006", "+15005550007"] as const
const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

interface Call {
  readonly operation: string
  readonly reservationId: string
  readonly number: string
  /** Whether a host began the work, and whether it did it, so that it may settle. */
  begun: boolean
  done: boolean
  ended: boolean
}

interface Received {
  readonly id: string
  readonly number: string
  readonly at: number
}

const make = Effect.gen(function* () {
  return {
    ledger: yield* Ledger,
    book: yield* PricePlan.PriceBook,
    messages: yield* Aggregate.make(Sms.Sms),
    waits: yield* Aggregate.make(Verification.Verification),
    addresses: yield* Aggregate.make(InboxAddress.AddressClaim),
    inboxes: yield* Aggregate.make(Inbox.Inbox),
    sessions: yield* Aggregate.make(ProxySession.ProxySession)
  }
})
type Parts = Effect.Success<typeof make>

/** What the history did so far. */
interface Past {
  readonly calls: Array<Call>
  readonly messages: Array<Received>
}

export const works = Effect.gen(function* () {
  const parts = yield* make
  const { ledger } = parts
  yield* ledger.execute(workerId, Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
  const lot = { lotId: "lot_worker", amount: Credits.of(10_000_000), source: "topup", expiresAt: null, paymentRef: "pay_worker" } as const
  yield* ledger.execute(workerId, Decisions.grant(lot))
  const past: Past = { calls: [], messages: [] }
  return {
    /** One step of one of them. */
    step: (random: Dice, step: number) =>
      Effect.andThen(random.chance(0.5) ? expireAll(parts, past) : Effect.void, Effect.ignore(next(parts, past, random, step))),
    /** Writes what is due, as servers do while they run. */
    end: Effect.suspend(() => expireAll(parts, past))
  }
})

const someOf = <A>(random: Dice, all: ReadonlyArray<A>): A | undefined => all[random.below(all.length)]

const next = (parts: Parts, past: Past, random: Dice, step: number) =>
  Effect.gen(function* () {
    const call = someOf(random, past.calls.slice(-6))
    switch (random.below(12)) {
      case 0:
      case 1:
        return yield* hold(parts, past, random, step)
      case 2:
      case 3:
        return call === undefined || call.begun ? undefined : yield* work(parts, past, random, call, step)
      case 4:
      case 5:
        return call === undefined ? undefined : yield* end(parts, random, call, step)
      case 6:
        return yield* receive(parts, past, random, step)
      case 7:
      case 8:
      case 9:
        return yield* live(parts, past, random, step)
      case 10:
        return yield* count(parts, past, random)
      default:
        return call === undefined ? undefined : yield* parts.ledger.refund(workerId, call.reservationId, { reason: "goodwill" })
    }
  })

const hold = Effect.fnUntraced(function* ({ book, ledger }: Parts, { calls }: Past, random: Dice, step: number) {
  const operation = random.pick(WAIT, CREATE_INBOX, OPEN_SESSION)
  const reservationId = `res_work_${step}`
  yield* ledger.execute(workerId, Decisions.reserve(yield* reserveOf(book, operation, reservationId)))
  calls.push({ operation, reservationId, number: random.pick(...NUMBERS), begun: false, done: false, ended: false })
})

const reserveOf = Effect.fnUntraced(function* (book: Parts["book"], operation: string, reservationId: string) {
  const { unitPrice, version } = yield* book.quote(operation)
  const priced = { operation, quantity: 1, priceVersion: version, unitPrice, lifetime: 3 * MINUTE }
  return { ...priced, reservationId, requestId: `req_${reservationId}` } satisfies Decisions.Reserve
})

/** Does the work of a call, also of one whose hold has ended. */
const work = Effect.fnUntraced(function* (parts: Parts, { messages }: Past, random: Dice, call: Call, step: number) {
  const { number, operation, reservationId } = call
  const accountId = workerId
  call.begun = true
  const now = yield* Clock.currentTimeMillis
  if (operation === WAIT) {
    const about = { accountId, reservationId, number }
    const sms = messages.findLast((message) => message.number === number && message.at > now - DAY)
    const left = random.chance(0.3)
    const ended =
      sms === undefined ? ({ _tag: "WaitTimedOut", ...about } as const) : ({ _tag: "CodeFound", ...about, sms: sms.id } as const)
    yield* parts.waits.execute(Verification.idOf(reservationId), Verification.end(left ? { _tag: "WaitAbandoned", ...about } : ended))
    call.done = !left
    return
  }
  if (operation === CREATE_INBOX) {
    const inboxId = Inbox.idOf(reservationId)
    const address = yield* claim(parts, inboxId, step)
    const lifetime = random.pick(MINUTE, 60 * MINUTE, DAY)
    const created = { accountId, ...address, sealedLabel: null }
    yield* parts.inboxes.execute(inboxId, (inbox, at) => Inbox.create({ ...created, expiresAt: at + lifetime })(inbox))
  } else {
    const terms = {
      protocol: "http",
      mode: "sticky",
      country: "DE",
      region: null,
      host: "proxy.example.com",
      port: 8080,
      ip: "192.0.2.7"
    } as const
    const bounds = {
      passwordHash: "hash",
      byteLimit: random.pick(1_000, 4_000),
      connectionLimit: 8,
      lifetime: random.pick(MINUTE, 60 * MINUTE)
    }
    yield* parts.sessions.execute(ProxySession.idOf(reservationId), ProxySession.begin({ accountId, ...terms, ...bounds }))
  }
  call.done = true
})

const claim = Effect.fnUntraced(function* ({ addresses }: Parts, inboxId: string, step: number) {
  const addressHash = `address_${step}`
  yield* addresses.execute(addressHash, InboxAddress.claim(inboxId))
  return { addressHash, sealedAddress: "sealed" }
})

/** Charges what was done, late if its hold has lapsed; else releases the hold. */
const end = Effect.fnUntraced(function* ({ book, ledger }: Parts, random: Dice, call: Call, step: number) {
  const { done, ended, operation, reservationId } = call
  const settle = { reservationId, replyHash: "hash" }
  if (ended) return
  call.ended = true
  if (!done || random.chance(0.2)) {
    yield* ledger.execute(workerId, Decisions.release(reservationId, random.pick("service_error", "cancelled", "abandoned")))
    return
  }
  const late = Effect.flatMap(reserveOf(book, operation, `res_late_${step}`), (reserve) =>
    ledger.execute(workerId, Decisions.settleLate(reserve, settle))
  )
  yield* Effect.catchTag(ledger.execute(workerId, Decisions.settle(settle)), ["HoldExpired", "AlreadyEnded"], () => late)
})

/** A text message arrives. */
const receive = Effect.fnUntraced(function* (parts: Parts, { messages }: Past, random: Dice, step: number) {
  const number = random.pick(...NUMBERS)
  const id = `sms_${step}`
  yield* parts.messages.execute(id, Sms.receive({ source: "host", number, text: { size: 1, hash: "hash" } }))
  messages.push({ id, number, at: yield* Clock.currentTimeMillis })
})

/** Something happens to an inbox. */
const live = Effect.fnUntraced(function* (parts: Parts, { calls }: Past, random: Dice, step: number) {
  const inboxId = someOf(random, idsOf(calls, CREATE_INBOX).slice(-2))
  if (inboxId === undefined) return
  const { state } = yield* parts.inboxes.read(inboxId)
  const addressHash = state.status === "active" ? state.addressHash : "none"
  const message = { messageId: `msg_${step}`, addressHash, size: 1_000, blobId: "blob", sealedSummary: "sealed" }
  const chosen = random.below(8)
  const move = Effect.map(claim(parts, inboxId, step), (address) => Inbox.rotate(inboxId, address))
  if (chosen === 0) return yield* parts.inboxes.execute(inboxId, Inbox.remove(inboxId))
  // As before moves named their calls
  if (chosen === 1) return yield* parts.inboxes.execute(inboxId, yield* move)
  if (chosen === 2) {
    const reservationId = `res_work_${step}`
    const reserve = yield* reserveOf(parts.book, ROTATE_INBOX, reservationId)
    yield* parts.ledger.execute(workerId, Decisions.reserve(reserve))
    const call: Call = { operation: ROTATE_INBOX, reservationId, number: "", begun: true, done: false, ended: false }
    calls.push(call)
    const { events } = yield* parts.inboxes.execute(inboxId, yield* move, { $correlationId: reserve.requestId })
    call.done = events.length > 0
    return
  }
  return yield* parts.inboxes.execute(inboxId, Inbox.receive(message))
})

/** A node counts what it carried for a session, also after its end. */
const count = Effect.fnUntraced(function* ({ sessions }: Parts, { calls }: Past, random: Dice) {
  const sessionId = someOf(random, idsOf(calls, OPEN_SESSION).slice(-3))
  if (sessionId === undefined) return
  const node = random.pick("node_1", "node_2")
  const { state } = yield* sessions.read(sessionId)
  const { connections, received, sent } = (state.status === "absent" ? undefined : state.traffic[node]) ?? {
    sent: 0,
    received: 0,
    connections: 0
  }
  const traffic = { sent: sent + random.below(1_000), received: received + random.below(1_000), connections: connections + 1 }
  yield* sessions.execute(sessionId, ProxySession.count(node, traffic))
})

/** The ids of the streams of calls whose work was done. */
const idsOf = (calls: ReadonlyArray<Call>, operation: string): ReadonlyArray<string> =>
  calls
    .filter((call) => call.operation === operation && call.done)
    .map(({ reservationId }) => (operation === CREATE_INBOX ? Inbox.idOf(reservationId) : ProxySession.idOf(reservationId)))

const expireAll = ({ inboxes, sessions }: Parts, { calls }: Past) =>
  Effect.all([
    Effect.forEach(idsOf(calls, CREATE_INBOX), (id) => inboxes.execute(id, Inbox.expire), { discard: true }),
    Effect.forEach(idsOf(calls, OPEN_SESSION), (id) => sessions.execute(id, ProxySession.expire), { discard: true })
  ])
