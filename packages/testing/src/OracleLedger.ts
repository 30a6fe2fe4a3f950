/**
 * The ledger a second time, as simply as it can be said: arrays, sums and loops, nothing kept small, nothing fast. It shares no code
 * with the real one and is told the same commands; where the two differ, one of them is wrong.
 *
 * It lives through time: whatever is due happens at its instant, so it also says what a ledger must say that was asleep until asked.
 * Amounts in thousandths of a credit, times in milliseconds.
 */

export type Source = "signup" | "topup" | "subscription" | "promotion" | "adjustment"
export type Reason = "service_error" | "cancelled" | "expired" | "abandoned" | "goodwill"

/** What a call wants to hold; see `Decisions.Reserve`. */
export interface Call {
  readonly reservationId: string
  readonly quantity: number
  readonly unitPrice: number
  readonly end:
    | { readonly _tag: "itself"; readonly lifetime: number }
    | { readonly _tag: "recovery"; readonly lifetime: number }
    | { readonly _tag: "job"; readonly acceptWithin: number }
  /** How long credits live anew that come back into an expired lot; a week when left out. */
  readonly adjustmentLifetime?: number
  /** `lookedUpAt`: when the reply store was asked. `knownAt`: how old the state is from which the successes were counted before. */
  readonly key?: { readonly hash: string; readonly fingerprint: string; readonly lookedUpAt: number; readonly knownAt: number }
}

/** What may be asked of an account: one for each decision. */
export type Command =
  | { readonly _tag: "Open" | "Suspend" | "Reinstate" | "Close" | "ApplyDue" }
  | { readonly _tag: "Verify"; readonly signUp: number; readonly lotId: string }
  | {
      readonly _tag: "Grant"
      readonly lotId: string
      readonly amount: number
      readonly source: Source
      readonly priority: number
      readonly expiresAt: number | null
    }
  | { readonly _tag: "ClawBack"; readonly lotId: string; readonly amount: number | undefined }
  | {
      readonly _tag: "ReverseClawback"
      readonly lotId: string
      readonly amount: number | undefined
      readonly adjustmentLifetime?: number | undefined
    }
  | { readonly _tag: "Reserve"; readonly call: Call }
  | { readonly _tag: "Settle"; readonly reservationId: string; readonly quantity: number | undefined }
  | { readonly _tag: "SettleLate"; readonly lateOf: string; readonly call: Call; readonly quantity: number | undefined }
  | { readonly _tag: "Release"; readonly reservationId: string; readonly reason: Exclude<Reason, "goodwill"> }
  | {
      readonly _tag: "Refund"
      readonly reservationId: string
      readonly reason: Reason
      readonly amount: number | undefined
      readonly adjustmentLifetime?: number | undefined
    }
  | { readonly _tag: "ReserveTrial"; readonly reservationId: string; readonly lifetime: number }
  | { readonly _tag: "UseTrial" | "ReleaseTrial"; readonly reservationId: string }

/** Tags of the errors that may refuse a command: one of them does. None: it is accepted. */
export type Prediction = ReadonlyArray<string>

/** An account as it must look. */
export interface View {
  readonly status: "absent" | "opened" | "verified" | "suspended" | "closed"
  readonly available: number
  readonly held: number
  readonly debt: number
  /** Those with anything left or held, in the order in which they are used. */
  readonly lots: ReadonlyArray<{
    /** {@link RENEWED} for lots that the ledger made by itself. */
    readonly lotId: string
    readonly source: Source
    readonly priority: number
    readonly expiresAt: number | null
    readonly left: number
    readonly held: number
    readonly claimed: number
  }>
  readonly trials: { readonly used: number; readonly open: number }
}

export const RENEWED = "renewed"

export interface OracleLedger {
  readonly tell: (command: Command, now: number) => Prediction
  readonly view: (now: number) => View
  /** Whether somebody who asked the reply store for this key at that instant would have been shown a reply. */
  readonly replied: (keyHash: string, at: number) => boolean
}

const MINUTE = 60_000
const WEEK = 7 * 24 * 60 * MINUTE
const DAY = 24 * 60 * MINUTE
const MEMORY = 10 * MINUTE
const SLOTS = 10
const NEVER = Number.POSITIVE_INFINITY

interface Lot {
  readonly lotId: string
  readonly name: string
  readonly source: Source
  readonly priority: number
  readonly expiresAt: number
  readonly grantedAt: number
  readonly granted: number
  clawedBack: number
  left: number
  /** Of what is held, what a clawback waits for. */
  claimed: number
}
interface Part {
  readonly lotId: string
  readonly amount: number
}
interface Hold extends Call {
  readonly parts: ReadonlyArray<Part>
  readonly expiresAt: number
}
interface Ending {
  readonly how: "succeeded" | Reason
  readonly at: number
  readonly key: Call["key"] | undefined
  readonly charged: ReadonlyArray<Part>
  givenBack: number
}

const sum = (amounts: ReadonlyArray<number>): number => amounts.reduce((a, b) => a + b, 0)
const remove = <A>(from: Array<A>, one: A) => from.splice(from.indexOf(one), 1)

/** The first `amount` of these parts. */
const first = (parts: ReadonlyArray<Part>, amount: number): ReadonlyArray<Part> =>
  parts.flatMap((part) => {
    const taken = Math.min(part.amount, amount)
    amount -= taken
    return taken === 0 ? [] : [{ lotId: part.lotId, amount: taken }]
  })

export const make = (): OracleLedger => {
  let status: View["status"] = "absent"
  let verified = false
  const lots: Array<Lot> = []
  const holds: Array<Hold> = []
  const debts: Array<{ lotId: string; amount: number }> = []
  const endings = new Map<string, Ending>()
  const trials = new Map<string, number>()
  const trialsUsed: Array<string> = []
  const trialsReleased: Array<string> = []
  let renewals = 0
  /** When successes under keys were recorded; how many of them are forgotten; and the two generations that are not. */
  const keyed: Array<number> = []
  let forgotten = 0
  let began = Number.NEGATIVE_INFINITY
  let newer = 0

  const paid = (lot: Lot) => lot.source === "topup" || lot.source === "subscription"
  const lotOf = (lotId: string) => lots.find((lot) => lot.lotId === lotId)
  const heldOf = (lotId: string) =>
    sum(holds.flatMap((hold) => hold.parts.filter((part) => part.lotId === lotId).map((part) => part.amount)))
  const isLive = (lot: Lot) => lot.left + heldOf(lot.lotId) > 0
  const debt = () => sum(debts.map(({ amount }) => amount))
  const inOrder = () =>
    [...lots].sort((a, b) =>
      a.expiresAt !== b.expiresAt ? (a.expiresAt < b.expiresAt ? -1 : 1) : a.priority - b.priority || a.grantedAt - b.grantedAt
    )

  /** Of lots granted in the same millisecond, one that was used up and lives again comes last. */
  const revive = (lotId: string) => {
    for (const lot of lots.filter((lot) => lot.lotId === lotId && !isLive(lot))) lots.push(...remove(lots, lot))
  }

  /** Credits for a lot; where it has expired meanwhile, for a new one that `lives` a while if that was our fault. */
  const giveTo = (lotId: string, amount: number, ours: boolean, at: number, lives = WEEK) => {
    const lot = lotOf(lotId)
    if (lot === undefined || amount === 0) return
    if (lot.expiresAt > at) lot.left += amount
    else if (ours) {
      const renewed = { source: "adjustment", priority: lot.priority, expiresAt: at + lives, grantedAt: at } as const
      lots.push({ lotId: `${RENEWED} ${++renewals}`, name: RENEWED, ...renewed, granted: amount, clawedBack: 0, left: amount, claimed: 0 })
    }
  }

  const owe = (lotId: string, amount: number) => {
    const owed = debts.find((debt) => debt.lotId === lotId)
    if (owed !== undefined) owed.amount += amount
    else if (amount > 0) debts.push({ lotId, amount })
  }
  const payOff = (owed: { amount: number }, upTo: number) => {
    const amount = Math.min(owed.amount, upTo)
    owed.amount -= amount
    debts.splice(0, debts.length, ...debts.filter((debt) => debt.amount > 0))
    return amount
  }
  const payOffLot = (lotId: string, upTo: number) => {
    const owed = debts.find((debt) => debt.lotId === lotId)
    return owed === undefined ? 0 : payOff(owed, upTo)
  }
  /** Paid lots repay what is owed. */
  const repay = (at: number) => {
    for (const lot of inOrder().filter((lot) => paid(lot) && lot.expiresAt > at)) {
      for (const owed of [...debts]) lot.left -= payOff(owed, lot.left)
    }
  }

  /** Two generations are remembered; one is over after ten minutes, when the next success comes. */
  const recordKey = (at: number) => {
    if (at - began >= MEMORY) {
      forgotten = at - began >= 2 * MEMORY ? keyed.length : newer
      newer = keyed.length
      began = at
    }
    keyed.push(at)
  }

  /** Ends a hold: the parts in `charged` are used, the rest goes back. */
  const end = (hold: Hold, how: Ending["how"], charged: ReadonlyArray<Part>, at: number) => {
    remove(holds, hold)
    endings.set(hold.reservationId, { how, at, key: hold.key, charged, givenBack: 0 })
    if (how === "succeeded" && hold.key !== undefined) recordKey(at)
    for (const { lotId, amount } of hold.parts) {
      const lot = lotOf(lotId)
      if (lot === undefined) continue
      const back = amount - sum(charged.filter((part) => part.lotId === lotId).map((part) => part.amount))
      const taken = Math.min(back, lot.claimed)
      lot.claimed -= taken
      // What no other hold on the lot could still bring back is owed
      const lost = Math.max(0, lot.claimed - heldOf(lotId))
      lot.claimed -= lost
      owe(lotId, lost)
      giveTo(lotId, back - taken, how !== "cancelled", at, hold.adjustmentLifetime)
    }
    repay(at)
  }

  /** Everything that is due by now, each thing at its instant: lots first, then holds, then trials. */
  const live = (now: number) => {
    for (;;) {
      const due = [
        ...lots.filter((lot) => lot.left > 0).map((lot) => lot.expiresAt),
        ...holds.map((hold) => hold.expiresAt),
        ...trials.values()
      ]
      const at = Math.min(...due, NEVER)
      if (at > now || at === NEVER) return
      for (const lot of lots) if (lot.expiresAt <= at) lot.left = 0
      const over = holds.filter((hold) => hold.expiresAt <= at)
      for (const hold of over.sort((a, b) => (a.reservationId < b.reservationId ? -1 : 1))) end(hold, "abandoned", [], at)
      for (const [id, expiresAt] of [...trials].sort()) {
        if (expiresAt > at) continue
        trials.delete(id)
        trialsReleased.push(id)
      }
    }
  }

  /** How a trial ended that is not open. Of those given back only the newest are known. */
  const trialEnding = (trial: string) =>
    trialsUsed.includes(trial) ? "used" : trialsReleased.slice(-SLOTS).includes(trial) ? "released" : "unknown"

  const usable = (): Prediction => (status === "absent" ? ["AccountNotFound"] : status === "closed" ? ["AccountClosed"] : [])

  const refusedKey = (key: NonNullable<Call["key"]>, now: number): Prediction => {
    const reused = (fingerprint: string | undefined, otherwise: string) => (fingerprint === key.fingerprint ? otherwise : "KeyReused")
    const running = holds.find((hold) => hold.key?.hash === key.hash)
    if (running !== undefined) return [reused(running.key?.fingerprint, "InFlight")]
    const since = keyed.filter((at) => at <= key.knownAt).length
    const successes = [...endings.values()].filter((ending) => ending.how === "succeeded" && ending.key !== undefined)
    const number = successes.findLastIndex((ending) => ending.key?.hash === key.hash) + 1
    const success = successes[number - 1]
    if (success !== undefined && number > forgotten && now - success.at < MEMORY)
      return [reused(success.key?.fingerprint, "AlreadySucceeded")]
    // What came after the count may be in the reply store by now
    return Math.max(forgotten, number) > since ? ["LookupStale"] : []
  }

  /** What a call would take, lot by lot; undefined when there is not that much. */
  const parts = ({ quantity, unitPrice }: Call): ReadonlyArray<Part> | undefined => {
    const free = inOrder().map(({ lotId, left }) => ({ lotId, amount: left }))
    const taken = first(free, quantity * unitPrice)
    return sum(taken.map(({ amount }) => amount)) === quantity * unitPrice ? taken : undefined
  }

  const refusedHold = (call: Call, now: number): Prediction => {
    const barred = usable()
    if (barred.length > 0) return barred
    if (status === "suspended") return ["AccountSuspended"]
    if (debt() > 0) return ["AccountInDebt"]
    const refused = call.key === undefined ? [] : refusedKey(call.key, now)
    if (refused.length > 0) return refused
    return parts(call) === undefined ? ["InsufficientCredits"] : []
  }

  const hold = (call: Call, now: number) => {
    const taken = parts(call) ?? []
    for (const lot of lots) lot.left -= sum(taken.filter(({ lotId }) => lotId === lot.lotId).map(({ amount }) => amount))
    holds.push({ ...call, parts: taken, expiresAt: call.end._tag === "itself" ? now + call.end.lifetime : NEVER })
  }

  const capture = (reservationId: string, quantity: number | undefined, now: number): Prediction => {
    const hold = holds.find((hold) => hold.reservationId === reservationId)
    if (hold === undefined) return ["ReservationNotFound"]
    const done = quantity ?? hold.quantity
    if (done < 0 || done > hold.quantity) return ["ChargeExceedsHold"]
    end(hold, "succeeded", first(hold.parts, done * hold.unitPrice), now)
    return []
  }

  const run = (command: Command, now: number): Prediction => {
    switch (command._tag) {
      case "ApplyDue":
        return []
      case "Open":
        if (status === "absent") status = "opened"
        return []
      case "Verify": {
        const barred = usable()
        if (barred.length > 0 || verified) return barred
        verified = true
        if (status === "opened") status = "verified"
        return run({ _tag: "Grant", lotId: command.lotId, amount: command.signUp, source: "signup", priority: 20, expiresAt: null }, now)
      }
      case "Suspend": {
        const barred = usable()
        if (barred.length === 0) status = "suspended"
        return barred
      }
      case "Reinstate": {
        const barred = usable()
        if (barred.length === 0) status = verified ? "verified" : "opened"
        return barred
      }
      case "Close": {
        if (status === "absent") return usable()
        status = "closed"
        return []
      }
      case "Grant": {
        const { lotId, amount, source, priority, expiresAt } = command
        const barred = usable()
        const known = lotOf(lotId)
        if (barred.length > 0 || amount === 0 || (known !== undefined && (paid(known) || isLive(known)))) return barred
        if (known !== undefined) remove(lots, known)
        const lot = { lotId, name: lotId, source, priority, expiresAt: expiresAt ?? NEVER, grantedAt: now }
        lots.push({ ...lot, granted: amount, clawedBack: 0, left: amount, claimed: 0 })
        repay(now)
        return []
      }
      case "ClawBack": {
        const lot = lotOf(command.lotId)
        if (lot === undefined || !paid(lot)) return [lot !== undefined && isLive(lot) ? "LotNotPaid" : "LotNotFound"]
        let missing = Math.min(command.amount ?? lot.granted, lot.granted - lot.clawedBack)
        lot.clawedBack += missing
        const free = Math.min(missing, lot.left)
        lot.left -= free
        missing -= free
        const waits = Math.min(missing, heldOf(lot.lotId) - lot.claimed)
        lot.claimed += waits
        owe(lot.lotId, missing - waits)
        repay(now)
        return []
      }
      case "ReverseClawback": {
        const lot = lotOf(command.lotId)
        if (lot === undefined || !paid(lot)) return ["LotNotFound"]
        let back = Math.min(command.amount ?? lot.clawedBack, lot.clawedBack)
        lot.clawedBack -= back
        const unclaimed = Math.min(back, lot.claimed)
        lot.claimed -= unclaimed
        back -= unclaimed
        back -= payOffLot(lot.lotId, back)
        if (back > 0) revive(lot.lotId)
        giveTo(lot.lotId, back, true, now, command.adjustmentLifetime)
        repay(now)
        return []
      }
      case "Reserve": {
        const { reservationId } = command.call
        if (holds.some((hold) => hold.reservationId === reservationId)) return []
        const ending = endings.get(reservationId)
        if (ending !== undefined) return ending.how === "succeeded" ? [] : ["AlreadyEnded"]
        const refused = refusedHold(command.call, now)
        if (refused.length === 0) hold(command.call, now)
        return refused
      }
      case "Settle": {
        const ending = endings.get(command.reservationId)
        if (ending === undefined) return capture(command.reservationId, command.quantity, now)
        // It may be told that the hold was over, that it was refunded, or that it never did that much
        return ending.how === "succeeded" ? [] : ["HoldExpired", "AlreadyEnded", "ChargeExceedsHold"]
      }
      case "SettleLate": {
        const { call, lateOf, quantity } = command
        if (holds.some((hold) => hold.reservationId === call.reservationId)) return ["InFlight"]
        const own = endings.get(call.reservationId)
        if (own !== undefined) return own.how === "succeeded" ? [] : ["AlreadyEnded"]
        const late = endings.get(lateOf)
        if (late?.how !== "abandoned") return [late === undefined ? "ReservationNotFound" : "AlreadyEnded"]
        const refused = refusedHold(call, now)
        if (refused.length > 0) return refused
        if ((quantity ?? call.quantity) > call.quantity) return ["ChargeExceedsHold"]
        hold(call, now)
        return capture(call.reservationId, quantity, now)
      }
      case "Release": {
        const open = holds.find((hold) => hold.reservationId === command.reservationId)
        if (open !== undefined) {
          end(open, command.reason, [], now)
          return []
        }
        const ending = endings.get(command.reservationId)
        return ending === undefined ? ["ReservationNotFound"] : ending.how === "succeeded" ? ["AlreadyEnded"] : []
      }
      case "Refund": {
        const ending = endings.get(command.reservationId)
        if (ending?.how !== "succeeded") return ["ReservationNotFound"]
        const total = sum(ending.charged.map(({ amount }) => amount))
        const wanted = command.amount ?? total - ending.givenBack
        if (wanted > total - ending.givenBack) return ["RefundExceedsCharge"]
        // As if less had been charged: what stays charged is the first of what was
        const kept = (amount: number) => first(ending.charged, amount)
        const before = kept(total - ending.givenBack)
        ending.givenBack += wanted
        const after = kept(total - ending.givenBack)
        for (const { lotId, amount } of [...before].reverse()) {
          const back = amount - sum(after.filter((part) => part.lotId === lotId).map((part) => part.amount))
          const free = back - payOffLot(lotId, back)
          if (free > 0) revive(lotId)
          giveTo(lotId, free, command.reason !== "cancelled", now, command.adjustmentLifetime)
        }
        repay(now)
        return []
      }
      case "ReserveTrial": {
        if (trials.has(command.reservationId)) return []
        const ending = trialEnding(command.reservationId)
        if (ending !== "unknown") return ending === "used" ? [] : ["AlreadyEnded"]
        const barred = usable()
        if (barred.length > 0) return barred
        if (status === "suspended") return ["AccountSuspended"]
        if (verified || trialsUsed.length + trials.size >= SLOTS) return ["TrialUsedUp"]
        trials.set(command.reservationId, now + command.lifetime)
        return []
      }
      case "UseTrial":
      case "ReleaseTrial": {
        const { _tag, reservationId } = command
        const isUse = _tag === "UseTrial"
        if (trials.delete(reservationId)) {
          const ended = isUse ? trialsUsed : trialsReleased
          ended.push(reservationId)
          return []
        }
        const ending = trialEnding(reservationId)
        if (ending === "unknown") return ["ReservationNotFound"]
        return (ending === "used") === isUse ? [] : ["AlreadyEnded"]
      }
    }
  }

  return {
    tell: (command, now) => {
      live(now)
      return run(command, now)
    },
    view: (now) => {
      live(now)
      const all = inOrder()
        .filter(isLive)
        .map(({ lotId, name, source, priority, expiresAt, left, claimed }) => ({
          lotId: name,
          source,
          priority,
          expiresAt: expiresAt === NEVER ? null : expiresAt,
          left,
          held: heldOf(lotId),
          claimed
        }))
      return {
        status,
        available: sum(all.map(({ left }) => left)),
        held: sum(all.map(({ held }) => held)),
        debt: debt(),
        lots: all,
        trials: { used: trialsUsed.length, open: trials.size }
      }
    },
    replied: (keyHash, at) =>
      [...endings.values()].some(
        ({ how, key, at: since }) => how === "succeeded" && key?.hash === keyHash && since <= at && at < since + DAY
      )
  }
}
