/** The inboxes in the log, as far as it was read, and who claimed their addresses. */
import { Inbox, InboxAddress } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { type CallIndex, CREATE_INBOX } from "./CallIndex.ts"
import { noAmount } from "./Means.ts"
import { iso, type Problems, type Replay, type ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"

/** The expiry of an inbox is written so long after it, at the latest: milliseconds. */
const MARGIN = 5 * 60_000

const TWICE = noAmount("mail that was meant for one inbox may have come to another")
const AFTER = noAmount("mail was taken that its sender should have got back")
const NOBODY = noAmount("no hold pays for this inbox, so it may have been created for nothing")
const MOVED = noAmount("no hold pays for this address, so the inbox may have moved for nothing")
const OVERDUE = noAmount("the inbox can no longer be used, and its end is not in the log")

type Received = Extract<Inbox.InboxEvent, { readonly _tag: "MessageReceived" }>

export class InboxIndex {
  /** The inboxes of addresses, by the HMACs of these. */
  readonly #owners = new Map<string, string>()
  /** Addresses whose claims cannot be read. */
  readonly #doubtful = new Set<string>()
  /** Addresses that an inbox has, or had. */
  readonly #given = new Set<string>()

  /** Inboxes without an end. */
  readonly #active = new Map<StreamName.StreamName, { readonly accountId: string; readonly expiresAt: number; readonly position: string }>()
  readonly #calls: CallIndex

  constructor(calls: CallIndex) {
    this.#calls = calls
  }

  beginAddress(stream: StreamName.StreamName, report: ReportProblem): Replay {
    const addressHash = StreamName.id(stream)
    return (type, data) => {
      const { inboxId } = InboxAddress.AddressClaim.codec.decode(type, data)
      const owner = this.#owners.get(addressHash)
      if (owner === undefined) this.#owners.set(addressHash, inboxId)
      else report("address-is-of-one-inbox" satisfies RuleName, `${owner} had claimed it before ${inboxId} did`, () => TWICE)
    }
  }

  beginInbox(stream: StreamName.StreamName, report: ReportProblem): Replay {
    const inboxId = StreamName.id(stream)
    let inbox: Inbox.Inbox = Inbox.Inbox.initial
    return (type, data, at, position, requestOf) => {
      const event = Inbox.Inbox.codec.decode(type, data)
      const account = "accountId" in event ? event.accountId : "accountId" in inbox ? inbox.accountId : undefined
      if (event._tag === "InboxCreated" || event._tag === "InboxRotated") {
        const wrong = this.#take(inboxId, event.addressHash)
        if (wrong !== undefined) report("address-is-of-one-inbox" satisfies RuleName, wrong, () => ({ account, ...TWICE }))
      }
      if (event._tag === "InboxCreated") this.#create(inboxId, event.accountId, report)
      if (event._tag === "InboxRotated" && account !== undefined) this.#move(account, requestOf(), report)
      const late = event._tag === "MessageReceived" ? notReceivable(inbox, event, at) : undefined
      if (late === undefined) inbox = Inbox.Inbox.evolve(inbox, event, at)
      else report("inbox-receives-while-it-lives" satisfies RuleName, late, () => ({ account, ...AFTER }))
      if (inbox.status === "active") this.#active.set(stream, { accountId: inbox.accountId, expiresAt: inbox.expiresAt, position })
      else this.#active.delete(stream)
    }
  }

  #create(inboxId: string, account: string, report: ReportProblem): void {
    const unpaid = this.#calls.unpaid(CREATE_INBOX, inboxId, account)
    if (unpaid !== undefined) report("inbox-is-created-under-its-reservation" satisfies RuleName, unpaid, () => ({ account, ...NOBODY }))
    this.#calls.leave(inboxId, "InboxCreated")
  }

  /** Rotations of earlier versions name no request, so nothing is known of their calls. */
  #move(account: string, requestId: string | undefined, report: ReportProblem): void {
    const unpaid = requestId === undefined ? undefined : this.#calls.unpaidMove(account, requestId)
    if (unpaid !== undefined) report("inbox-moves-for-one-call" satisfies RuleName, unpaid, () => ({ account, ...MOVED }))
  }

  /** Notes that the claim of an address cannot be replayed. */
  lostAddress(stream: StreamName.StreamName): void {
    this.#doubtful.add(StreamName.id(stream))
  }

  /** Forgets an inbox whose stream cannot be replayed further. */
  lost(stream: StreamName.StreamName): void {
    this.#active.delete(stream)
    this.#calls.doubt(StreamName.id(stream))
  }

  /** Reports inboxes that at `now` are long past their expiry, which was not written. */
  reportOverdue(now: number, problems: Problems): void {
    for (const [stream, { accountId, expiresAt, position }] of this.#active) {
      const detail = `its expiry was ${iso(expiresAt)}, and its end was not written`
      if (expiresAt + MARGIN <= now)
        problems.add({ position, stream }, "inbox-ends-by-its-expiry", detail, () => ({ account: accountId, ...OVERDUE }))
    }
  }

  /** Gives an address to an inbox. Returns what is wrong with that. */
  #take(inboxId: string, addressHash: string): string | undefined {
    const owner = this.#owners.get(addressHash)
    if (owner !== inboxId && !(owner === undefined && this.#doubtful.has(addressHash)))
      return owner === undefined ? "nobody had claimed the address" : `the address belongs to ${owner}`
    if (this.#given.has(addressHash)) return "the inbox had this address before"
    this.#given.add(addressHash)
    return undefined
  }
}

/** Why a message cannot have been received; undefined if it can. */
const notReceivable = (inbox: Inbox.Inbox, { addressHash }: Received, at: number): string | undefined => {
  if (inbox.status === "absent") return undefined
  if (inbox.status !== "active") return `the inbox was ${inbox.status} before`
  if (at >= inbox.expiresAt) return `the inbox had expired at ${iso(inbox.expiresAt)}`
  return addressHash === inbox.addressHash ? undefined : "the inbox had another address by then"
}
