/** Checks calls of accounts on trial: compares their answers with the slots in the log. */
import { hash } from "node:crypto"
import type { Charge, EventOf } from "@millrace/core"
import { Exit } from "effect"
import type { Evidence, Report } from "../Evidence.ts"
import type { RecordedAccountEvent } from "../LogRecorder.ts"
import { type Call, tagOf } from "../Records.ts"

/** A slot, and the event that ended it. */
interface Slot {
  readonly reserved: EventOf<"TrialReserved">
  end?: RecordedAccountEvent & { readonly event: EventOf<"TrialUsed" | "TrialReleased"> }
}

/** Errors after which a call may have used its slot: its caller was not told the outcome. */
const UNTOLD = new Set<string | undefined>(["Disconnected", "OutcomeUnknown", "AppendInDoubt"])

/** Every slot ends, and a call used one exactly if its caller was answered a success that was not replayed, as far as it was answered. */
export const checkTrials = ({ calls, records: { recorder } }: Evidence, report: Report): void => {
  const byRequest = slotsOf(recorder.accountEvents, report)
  for (const call of calls) {
    const slots = byRequest.get(call.requestId) ?? []
    const used = slots.filter(({ end }) => end?.event._tag === "TrialUsed")
    const say: Report = (violation) => report(`${call.requestId} ${violation}`)
    if (used.length > 1) say(`used ${used.length} slots of its trial`)
    if (call.response !== undefined && slots.length > 0) checkAnswer(call.response, used, say)
  }
}

const slotsOf = (events: ReadonlyArray<RecordedAccountEvent>, report: Report): ReadonlyMap<string, ReadonlyArray<Slot>> => {
  const slots = new Map<string, Slot>()
  for (const recorded of events) {
    const { event } = recorded
    if (event._tag === "TrialReserved") slots.set(event.reservationId, { reserved: event })
    if (event._tag !== "TrialUsed" && event._tag !== "TrialReleased") continue
    const slot = slots.get(event.reservationId)
    if (slot !== undefined) slot.end = { ...recorded, event }
  }
  for (const { end, reserved } of slots.values()) if (end === undefined) report(`the slot ${reserved.reservationId} has no end`)
  return Map.groupBy(slots.values(), ({ reserved }) => reserved.requestId)
}

const checkAnswer = ({ answer, lengthAfter }: NonNullable<Call["response"]>, used: ReadonlyArray<Slot>, report: Report): void => {
  if (Exit.isSuccess(answer)) return checkSuccess(answer.value, lengthAfter, used, report)
  const tag = tagOf(answer)
  if (used.length > 0 && !UNTOLD.has(tag) && !Exit.hasInterrupts(answer))
    report(`failed with ${tag ?? "a defect"}, but used a slot of its trial`)
}

const checkSuccess = ({ billed, data, replayed }: Charge.Reply, lengthAfter: number, used: ReadonlyArray<Slot>, report: Report): void => {
  const [end] = used.flatMap(({ end }) => end ?? [])
  if (replayed) return end === undefined ? undefined : report("was answered a replay, and used a slot of its trial")
  if (billed?.charged !== 0) return report("holds a slot of its trial, and was answered a cost")
  if (end === undefined) return report("was answered a success, but used no slot of its trial")
  if (end.index > lengthAfter) report("was answered a success before its slot was used")
  if (end.event._tag === "TrialUsed" && end.event.replyHash !== hash("sha256", data, "base64url"))
    report("was answered another reply than the trial has")
}
