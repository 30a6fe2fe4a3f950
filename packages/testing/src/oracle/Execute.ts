/** What each command does to the account of the oracle ledger: it changes the account, or it is refused and changes nothing. */
import type { Call, Command, Prediction } from "./Commands.ts"
import { first, isPaid, MEMORY, type OracleAccount, SLOTS, total } from "./OracleAccount.ts"

type Of<Tag extends Command["_tag"]> = Extract<Command, { readonly _tag: Tag }>

const ACCEPTED: Prediction = []

/** Executes a command at `now` on an account whose time has advanced to `now`. */
export const execute = (account: OracleAccount, command: Command, now: number): Prediction => {
  switch (command._tag) {
    case "ApplyDue":
      return ACCEPTED
    case "Open":
      if (account.status === "absent") account.status = "opened"
      return ACCEPTED
    case "Suspend":
      return ifUsable(account, () => Object.assign(account, { status: "suspended" }))
    case "Reinstate":
      return ifUsable(account, () => Object.assign(account, { status: account.verified ? "verified" : "opened" }))
    case "Close":
      if (account.status === "absent") return unusable(account)
      account.status = "closed"
      account.threshold = null
      account.recurring.length = 0
      return ACCEPTED
    case "Verify":
      return verify(account, command, now)
    case "Grant":
      return ifUsable(account, () => grant(account, command, now))
    case "ClawBack":
      return clawBack(account, command, now)
    case "ReverseClawback":
      return reverseClawback(account, command, now)
    case "Reserve":
      return reserve(account, command.call, now)
    case "Settle":
      return settle(account, command, now)
    case "SettleLate":
      return settleLate(account, command, now)
    case "Release":
      return release(account, command, now)
    case "Refund":
      return refund(account, command, now)
    case "StartRecurring":
      return startRecurring(account, command, now)
    case "StopRecurring":
      return stopRecurring(account, command)
    case "AnnounceExpiry":
      for (const lot of account.lots)
        if (lot.lotId === command.lotId && lot.left > 0 && lot.expiresAt !== Number.POSITIVE_INFINITY) lot.announced = true
      return ACCEPTED
    case "SetThreshold":
      return ifUsable(account, () => Object.assign(account, { threshold: command.threshold }))
    case "ReserveTrial":
      return reserveTrial(account, command, now)
    case "UseTrial":
    case "ReleaseTrial":
      return endTrial(account, command)
  }
}

/** Why the account takes no commands. */
const unusable = ({ status }: OracleAccount): Prediction =>
  status === "absent" ? ["AccountNotFound"] : status === "closed" ? ["AccountClosed"] : ACCEPTED

const ifUsable = (account: OracleAccount, change: () => unknown): Prediction => {
  const refused = unusable(account)
  if (refused.length === 0) change()
  return refused
}

const verify = (account: OracleAccount, { lotId, signUp }: Of<"Verify">, now: number): Prediction => {
  const refused = unusable(account)
  if (refused.length > 0 || account.verified) return refused
  account.verified = true
  if (account.status === "opened") account.status = "verified"
  grant(account, { _tag: "Grant", lotId, amount: signUp, source: "signup", priority: 20, expiresAt: null }, now)
  return ACCEPTED
}

/** A lot is granted once. An id may be granted again once its lot is used up, unless it is a paid lot. */
const grant = (account: OracleAccount, { _tag, amount, expiresAt, ...lot }: Of<"Grant">, now: number): void => {
  const known = account.lot(lot.lotId)
  if (amount === 0 || (known !== undefined && (isPaid(known) || account.isLive(known)))) return
  const terms = { ...lot, name: lot.lotId, expiresAt: expiresAt ?? Number.POSITIVE_INFINITY, grantedAt: now }
  account.addLot({ ...terms, granted: amount, clawedBack: 0, left: amount, claimed: 0, announced: false })
  account.repay(now)
}

const MOST_RECURRING = 16

const startRecurring = (account: OracleAccount, { grant }: Of<"StartRecurring">, now: number): Prediction => {
  const refused = unusable(account)
  if (refused.length > 0) return refused
  if (grant.source === "topup" || grant.source === "subscription") return ["RecurringSourcePaid"]
  const { recurring } = account
  if (recurring.some(({ grantId }) => grantId === grant.grantId)) return ACCEPTED
  if (account.lots.some((lot) => lot.lotId.startsWith(`${grant.grantId} `) && account.isLive(lot))) return ACCEPTED
  if (grant.amount === 0 || (grant.until !== null && grant.until <= now)) return ACCEPTED
  if (recurring.length >= MOST_RECURRING) return ["TooManyRecurringGrants"]
  recurring.push({ ...grant, anchor: now, period: 0, dueAt: now })
  account.advanceTo(now)
  return ACCEPTED
}

const stopRecurring = (account: OracleAccount, { grantId }: Of<"StopRecurring">): Prediction => {
  if (account.status === "absent") return unusable(account)
  const known = account.recurring.findIndex((grant) => grant.grantId === grantId)
  if (known < 0) return ["RecurringGrantNotFound"]
  account.recurring.splice(known, 1)
  return ACCEPTED
}

const clawBack = (account: OracleAccount, { amount, lotId }: Of<"ClawBack">, now: number): Prediction => {
  const lot = account.lot(lotId)
  if (lot === undefined || !isPaid(lot)) return [lot !== undefined && account.isLive(lot) ? "LotNotPaid" : "LotNotFound"]
  let missing = Math.min(amount ?? lot.granted, lot.granted - lot.clawedBack)
  lot.clawedBack += missing
  const free = Math.min(missing, lot.left)
  lot.left -= free
  missing -= free
  const claimed = Math.min(missing, account.heldOf(lotId) - lot.claimed)
  lot.claimed += claimed
  account.owe(lotId, missing - claimed)
  account.repay(now)
  return ACCEPTED
}

const reverseClawback = (account: OracleAccount, { adjustmentLifetime, amount, lotId }: Of<"ReverseClawback">, now: number): Prediction => {
  const lot = account.lot(lotId)
  if (lot === undefined || !isPaid(lot)) return ["LotNotFound"]
  let back = Math.min(amount ?? lot.clawedBack, lot.clawedBack)
  lot.clawedBack -= back
  const unclaimed = Math.min(back, lot.claimed)
  lot.claimed -= unclaimed
  back -= unclaimed
  back -= account.payOff(lotId, back)
  if (back > 0) account.revive(lotId)
  account.giveTo(lotId, back, true, now, adjustmentLifetime)
  account.repay(now)
  return ACCEPTED
}

const refusedKey = ({ endings, holds, successes: memory }: OracleAccount, key: NonNullable<Call["key"]>, now: number): Prediction => {
  const unlessReused = (fingerprint: string | undefined, error: string) => (fingerprint === key.fingerprint ? error : "KeyReused")
  const running = holds.find((hold) => hold.key?.hash === key.hash)
  if (running !== undefined) return [unlessReused(running.key?.fingerprint, "InFlight")]
  const since = memory.countBy(key.knownAt)
  const successes = [...endings.values()].filter(({ how, key: used }) => how === "succeeded" && used !== undefined)
  const number = successes.findLastIndex(({ key: used }) => used?.hash === key.hash) + 1
  const success = successes[number - 1]
  if (success !== undefined && number > memory.forgotten && now - success.at < MEMORY)
    return [unlessReused(success.key?.fingerprint, "AlreadySucceeded")]
  // What came after the count may be in the reply store by now
  return Math.max(memory.forgotten, number) > since ? ["LookupStale"] : ACCEPTED
}

const refusedHold = (account: OracleAccount, call: Call, now: number): Prediction => {
  const barred = unusable(account)
  if (barred.length > 0) return barred
  if (account.status === "suspended") return ["AccountSuspended"]
  if (account.debt > 0) return ["AccountInDebt"]
  const refused = call.key === undefined ? ACCEPTED : refusedKey(account, call.key, now)
  if (refused.length > 0) return refused
  return account.partsFor(call) === undefined ? ["InsufficientCredits"] : ACCEPTED
}

const reserve = (account: OracleAccount, call: Call, now: number): Prediction => {
  const { reservationId } = call
  if (account.openHold(reservationId) !== undefined) return ACCEPTED
  const ending = account.endings.get(reservationId)
  if (ending !== undefined) return ending.how === "succeeded" ? ACCEPTED : ["AlreadyEnded"]
  const refused = refusedHold(account, call, now)
  if (refused.length === 0) account.hold(call, now)
  return refused
}

const capture = (account: OracleAccount, reservationId: string, quantity: number | undefined, now: number): Prediction => {
  const hold = account.openHold(reservationId)
  if (hold === undefined) return ["ReservationNotFound"]
  const done = quantity ?? hold.quantity
  if (done < 0 || done > hold.quantity) return ["ChargeExceedsHold"]
  account.end(hold, "succeeded", first(hold.parts, done * hold.unitPrice), now)
  return ACCEPTED
}

const settle = (account: OracleAccount, { quantity, reservationId }: Of<"Settle">, now: number): Prediction => {
  const ending = account.endings.get(reservationId)
  if (ending === undefined) return capture(account, reservationId, quantity, now)
  // The ledger may answer that the hold expired, that it was refunded, or that it was too small
  return ending.how === "succeeded" ? ACCEPTED : ["HoldExpired", "AlreadyEnded", "ChargeExceedsHold"]
}

const settleLate = (account: OracleAccount, { call, lateOf, quantity }: Of<"SettleLate">, now: number): Prediction => {
  const { reservationId } = call
  if (account.openHold(reservationId) !== undefined) return ["InFlight"]
  const own = account.endings.get(reservationId)
  if (own !== undefined) return own.how === "succeeded" ? ACCEPTED : ["AlreadyEnded"]
  const late = account.endings.get(lateOf)
  if (late?.how !== "abandoned") return [late === undefined ? "ReservationNotFound" : "AlreadyEnded"]
  const refused = refusedHold(account, call, now)
  if (refused.length > 0) return refused
  if ((quantity ?? call.quantity) > call.quantity) return ["ChargeExceedsHold"]
  account.hold(call, now)
  return capture(account, reservationId, quantity, now)
}

/** Returns what a hold holds. */
const release = (account: OracleAccount, { reason, reservationId }: Of<"Release">, now: number): Prediction => {
  const open = account.openHold(reservationId)
  if (open !== undefined) {
    account.end(open, reason, [], now)
    return ACCEPTED
  }
  const ending = account.endings.get(reservationId)
  return ending === undefined ? ["ReservationNotFound"] : ending.how === "succeeded" ? ["AlreadyEnded"] : ACCEPTED
}

/** Refunds what was charged, or a part of it, as if less had been charged: the first parts stay charged. */
const refund = (account: OracleAccount, command: Of<"Refund">, now: number): Prediction => {
  const ending = account.endings.get(command.reservationId)
  if (ending?.how !== "succeeded") return ["ReservationNotFound"]
  const charged = total(ending.charged)
  const wanted = command.amount ?? charged - ending.refunded
  if (wanted > charged - ending.refunded) return ["RefundExceedsCharge"]
  const before = first(ending.charged, charged - ending.refunded)
  ending.refunded += wanted
  const after = first(ending.charged, charged - ending.refunded)
  for (const { lotId, amount } of [...before].reverse()) {
    const back = amount - total(after, lotId)
    const free = back - account.payOff(lotId, back)
    if (free > 0) account.revive(lotId)
    account.giveTo(lotId, free, command.reason !== "cancelled", now, command.adjustmentLifetime)
  }
  account.repay(now)
  return ACCEPTED
}

/** How a trial ended. The ledger remembers only the newest of those that were released. */
const trialEnding = ({ trialsReleased, trialsUsed }: OracleAccount, trial: string) =>
  trialsUsed.includes(trial) ? "used" : trialsReleased.slice(-SLOTS).includes(trial) ? "released" : "unknown"

const reserveTrial = (account: OracleAccount, { lifetime, reservationId }: Of<"ReserveTrial">, now: number): Prediction => {
  const { trials, trialsUsed } = account
  if (trials.has(reservationId)) return ACCEPTED
  const ending = trialEnding(account, reservationId)
  if (ending !== "unknown") return ending === "used" ? ACCEPTED : ["AlreadyEnded"]
  const barred = unusable(account)
  if (barred.length > 0) return barred
  if (account.status === "suspended") return ["AccountSuspended"]
  // Whoever was ever granted credits pays with credits
  if (account.verified || account.lots.length > 0 || trialsUsed.length + trials.size >= SLOTS) return ["TrialUsedUp"]
  trials.set(reservationId, now + lifetime)
  return ACCEPTED
}

const endTrial = (account: OracleAccount, { _tag, reservationId }: Of<"UseTrial" | "ReleaseTrial">): Prediction => {
  const isUse = _tag === "UseTrial"
  if (account.trials.delete(reservationId)) {
    const ended = isUse ? account.trialsUsed : account.trialsReleased
    ended.push(reservationId)
    return ACCEPTED
  }
  const ending = trialEnding(account, reservationId)
  if (ending === "unknown") return ["ReservationNotFound"]
  return (ending === "used") === isUse ? ACCEPTED : ["AlreadyEnded"]
}
