/** Checks every answer about an inbox, to its owner and to senders, against the inbox in the log. */
import { hash } from "node:crypto"
import { Inbox } from "@millrace/core"
import { Exit, Option } from "effect"
import { type Evidence, isAbandoned, type Report } from "../Evidence.ts"
import { type Call, dataOf, type Mailing } from "../Records.ts"

export const checkInboxes = (evidence: Evidence, report: Report): void => {
  const mailings = new Map<string, Mailing>()
  for (const mailing of evidence.records.mailings) mailings.set(messageIdOf(mailing, evidence), mailing)
  for (const mailing of evidence.records.mailings) checkMailing(mailing, evidence, report)
  checkReceived(evidence, mailings, report)
  checkPaid(evidence, report)
  for (const call of evidence.calls) {
    const inboxId: unknown = call.intent.input.inbox
    if (typeof inboxId !== "string" || call.response === undefined) continue
    const tell = (violation: string) => report(`${call.requestId}: ${violation}`)
    if (Exit.isFailure(call.response.answer)) checkNotFound(call, inboxId, evidence, tell)
    else if (!call.response.answer.value.replayed) checkShown(call, inboxId, mailings, evidence, tell)
  }
}

/** An inbox that lives when its hold lapses is charged: recovery finds it. */
const checkPaid = ({ recorder, reservations }: Evidence, report: Report): void => {
  for (const { end, hold } of reservations.byId.values()) {
    if (hold.operation !== "inbox.create" || end === undefined || !isAbandoned(end)) continue
    const inboxId = Inbox.idOf(hold.reservationId)
    const [before] = recorder.inboxes.between(inboxId, end.index, end.index)
    if (before !== undefined && Inbox.isLive(before, end.at)) report(`${inboxId} lived, but its hold was released as abandoned`)
  }
}

const hashOf = (address: string, { records }: Evidence): string => records.addressHashes.get(address) ?? ""

/** The id that the message has in its inbox. */
const messageIdOf = ({ message: { address, queueId } }: Mailing, evidence: Evidence): string =>
  `msg_${hash("sha256", JSON.stringify([queueId, hashOf(address, evidence)]), "hex").slice(0, 26)}`

/** The account of an inbox that was created. */
const ownerOf = (inboxId: string, { recorder }: Evidence): string | undefined => {
  const event = recorder.inboxes.of(inboxId).events[0]?.event
  return event?._tag === "InboxCreated" ? event.accountId : undefined
}

const expiryOf = (inboxId: string, { recorder }: Evidence): number => {
  const event = recorder.inboxes.of(inboxId).events[0]?.event
  return event?._tag === "InboxCreated" ? event.expiresAt : 0
}

/** Whether a caller had begun to delete the inbox by then: its key is destroyed before its end is written. */
const isEnding = (inboxId: string, at: number, { calls }: Evidence): boolean =>
  calls.some(({ intent, startedAt }) => intent.operation === "inbox.delete" && intent.input.inbox === inboxId && startedAt <= at)

/** What the sender was told was so at some instant between question and answer. */
const checkMailing = (mailing: Mailing, evidence: Evidence, report: Report): void => {
  const { answer, lengthBefore, message, startedAt } = mailing
  const { faults, recorder } = evidence
  if (answer === undefined) return
  const addressHash = hashOf(message.address, evidence)
  const has = ({ states }: { readonly states: ReadonlyArray<Inbox.Inbox> }) =>
    states.some((state) => state.status === "active" && state.addressHash === addressHash)
  const [inboxId] = [...recorder.inboxes.byId].find(([, history]) => has(history)) ?? []
  const what = `${message.queueId} to ${message.address}`
  if (inboxId === undefined) {
    if (answer.told === "taken") report(`${what} was taken, but nobody ever had the address`)
    return
  }
  const id = messageIdOf(mailing, evidence)
  const between = recorder.inboxes.between(inboxId, lengthBefore, answer.lengthAfter)
  const addressed = between.map((state) => state.status === "active" && state.addressHash === addressHash)
  const isExpired = startedAt >= expiryOf(inboxId, evidence)
  const received = recorder.inboxes.of(inboxId).events.find(({ event }) => event._tag === "MessageReceived" && event.messageId === id)
  if (answer.told === "taken") {
    if (received === undefined || received.index > answer.lengthAfter) return report(`${what} was taken, but is not in the log`)
    if (received.index > lengthBefore && (isExpired || !addressed.includes(true)))
      report(`${what} was taken after its inbox had ended or moved`)
    return
  }
  const isGone = answer.at + faults.skew >= expiryOf(inboxId, evidence) || isEnding(inboxId, answer.at, evidence)
  if (answer.told === "UnknownAddress" && !addressed.includes(false) && !isGone)
    report(`${what} was refused, but its inbox has the address`)
  if (answer.told === "InboxFull") report(`${what} was refused, but its inbox has room`)
  if (answer.told === "ReceiverUnavailable" && startedAt >= evidence.undisturbedSince && startedAt >= evidence.faultsEnded.at)
    report(`${what} was put off, though nothing keeps the host from its stores`)
}

/** Every message in the log was sent, and stands once. */
const checkReceived = ({ recorder }: Evidence, mailings: ReadonlyMap<string, Mailing>, report: Report): void => {
  for (const [inboxId, { events }] of recorder.inboxes.byId) {
    const received = events.flatMap(({ event }) => (event._tag === "MessageReceived" ? [event.messageId] : []))
    if (new Set(received).size < received.length) report(`${inboxId} has a message twice`)
    for (const id of received) if (!mailings.has(id)) report(`${inboxId} has ${id}, which nobody sent`)
  }
}

/** A caller is told that there is no inbox only if it is not theirs, or is gone. */
const checkNotFound = (call: Call, inboxId: string, evidence: Evidence, report: Report): void => {
  const { intent, lengthBefore, response } = call
  const error = response && Option.getOrUndefined(Exit.findErrorOption(response.answer))
  // An upstream that fails says it of a thing
  if (response === undefined || error?._tag !== "NotFound" || error.resource !== "inbox") return
  const states = evidence.recorder.inboxes.between(inboxId, lengthBefore, response.lengthAfter)
  const isLive = states.every(({ status }) => status === "active") && response.at + evidence.faults.skew < expiryOf(inboxId, evidence)
  if (intent.accountId === ownerOf(inboxId, evidence) && isLive && !isEnding(inboxId, response.at, evidence))
    report(`was answered that there is no ${inboxId}, which lives`)
}

/** What a caller is shown of an inbox was so at some instant between question and answer. */
const checkShown = (call: Call, inboxId: string, mailings: ReadonlyMap<string, Mailing>, evidence: Evidence, report: Report): void => {
  const { intent, lengthBefore, response, startedAt } = call
  if (response === undefined) return
  const { inboxes } = evidence.recorder
  const between = inboxes.between(inboxId, lengthBefore, response.lengthAfter)
  const live = between.filter((state) => state.status === "active")
  if (intent.accountId !== ownerOf(inboxId, evidence)) report(`was shown ${inboxId}, which is another account's`)
  if (live.length === 0 || startedAt >= expiryOf(inboxId, evidence)) report(`was shown ${inboxId}, which is gone`)
  const since = inboxes.of(inboxId).events.filter(({ index }) => index > lengthBefore && index <= response.lengthAfter)
  const data = dataOf(call)
  switch (intent.operation) {
    case "inbox.delete":
      if (!since.some(({ event }) => event._tag === "InboxDeleted")) report(`was answered that ${inboxId} is deleted, but it was not`)
      break
    case "inbox.rotate":
      if (!since.some(({ event }) => event._tag === "InboxRotated")) report(`was answered that ${inboxId} is moved, but it was not`)
      checkRecord(data, live, evidence, report)
      break
    case "inbox.read":
      checkRecord(data, live, evidence, report)
      break
    case "inbox.listMessages":
      checkList(data.messages, live, mailings, report)
      break
    case "inbox.readMessage": {
      const message = mailings.get(data.message_id)?.message
      if (message?.subject !== data.subject || message?.text !== data.text) report(`was shown another message than ${data.message_id}`)
    }
  }
}

interface Shown {
  readonly address: string
  readonly message_count: number
}

const checkRecord = ({ address, message_count }: Shown, live: ReadonlyArray<Inbox.Active>, evidence: Evidence, report: Report): void => {
  if (!live.some(({ addressHash, messages }) => addressHash === hashOf(address, evidence) && messages.length === message_count))
    report(`was shown the address ${address} and ${message_count} messages, which was never so`)
}

interface Line {
  readonly message_id: string
  readonly subject: string | null
}

/** A list has all messages of one instant, the newest first. */
const checkList = (
  lines: ReadonlyArray<Line>,
  live: ReadonlyArray<Inbox.Active>,
  mailings: ReadonlyMap<string, Mailing>,
  report: Report
): void => {
  const shown = lines.map(({ message_id }) => message_id).toReversed()
  const isSame = ({ messages }: Inbox.Active) =>
    messages.length === shown.length && messages.every(({ messageId }, i) => messageId === shown[i])
  if (!live.some(isSame)) report(`was shown ${shown.length} messages, which was never so`)
  for (const { message_id, subject } of lines)
    if (mailings.get(message_id)?.message.subject !== subject) report(`was shown another subject of ${message_id}`)
}
