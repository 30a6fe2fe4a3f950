/** Rules of the ends of holds: each ends exactly once, in a charge of a part or a release of the whole. */
import { Account, type EventOf, Lots } from "@millrace/core"
import {
  amountOf,
  credits,
  differ,
  differing,
  excess,
  type Parts,
  type Rule,
  rule,
  type Step,
  totalOf,
  wholeOf,
  wrongTotal
} from "./Rule.ts"

export const chargeRules: ReadonlyArray<Rule> = [
  // Charged = units done × unit price of the hold
  rule(
    "charge-is-priced",
    ["OperationSucceeded"],
    ({ quantity, charged }, { hold }) => {
      if (hold === undefined || charged === (quantity === 0 ? 0 : (hold.amount / hold.quantity) * quantity)) return undefined
      return `${credits(hold.amount)} was held for ${hold.quantity} units, but ${credits(charged)} charged for ${quantity}`
    },
    (event, { hold }, say) => {
      const right = hold === undefined || hold.quantity === 0 ? 0 : (hold.amount / hold.quantity) * event.quantity
      return excess(event.charged, right, `charged for ${hold?.operation}`, say)
    }
  ),

  // Only an open hold is ended, so every hold ends at most once. Holds without an end are reported at the end of the log
  rule(
    "hold-ends-once",
    ["OperationSucceeded", "Refunded"],
    (event, { before, hold }) => {
      if ((event._tag === "Refunded" && event.stage === "settled") || hold !== undefined) return undefined
      const past = Account.outcome(before, event.reservationId)
      return `reservation ${event.reservationId} was not open${past === undefined ? "" : `: it had ${past._tag}`}`
    },
    (event, _, say) =>
      wholeOf(event, event._tag === "Refunded" ? "although they were not held any more" : "although nothing was held for it any more", say)
  ),

  // A charge is a part of its hold, lot by lot, for a part of the quantity
  rule(
    "charge-is-part-of-its-hold",
    ["OperationSucceeded"],
    ({ charged, lots, quantity }, { hold }) => {
      if (hold === undefined) return undefined
      if (charged > hold.amount) return `${credits(charged)} was charged, but ${credits(hold.amount)} held`
      if (quantity < 0 || quantity > hold.quantity) return `${quantity} units were charged, but ${hold.quantity} held`
      for (const { lotId, amount } of lots) {
        const held = amountOf(hold.lots, lotId)
        if (amount > held) return `${credits(amount)} of lot ${lotId} was charged, but ${credits(held)} held`
      }
      return wrongTotal(lots, charged, "the charged amount")
    },
    (event, { hold }, say) => {
      const { charged, lots } = event
      const held = hold?.amount ?? 0
      if (charged > held) return excess(charged, held, "charged, more than was held", say)
      const over = lots.find(({ lotId, amount }) => amount > amountOf(hold?.lots ?? [], lotId))
      if (over !== undefined) return excess(over.amount, amountOf(hold?.lots ?? [], over.lotId), "charged of one lot", say, over.lotId)
      if (totalOf(lots) !== charged) return excess(charged, totalOf(lots), "charged, compared with what the lots paid", say)
      return wholeOf(event, "for more units than were held", say)
    }
  ),

  // A release returns the whole hold to the lots that it came from
  rule(
    "refund-is-its-hold",
    ["Refunded"],
    ({ stage, amount, lots }, { hold }) => {
      if (stage === "settled") return wrongTotal(lots, amount, "the refunded amount")
      if (hold === undefined) return undefined
      if (amount !== hold.amount) return `${credits(amount)} was released, but ${credits(hold.amount)} held`
      return wrongTotal(lots, amount, "the released amount") ?? differ(lots, hold.lots, "the release to")
    },
    (event, { hold }, say) => {
      const { amount, lots, stage } = event
      if (stage === "settled") return excess(amount, totalOf(lots), "refunded, compared with what the lots got", say)
      if (hold !== undefined && amount !== hold.amount) return excess(amount, hold.amount, "released", say)
      const lot = differing(lots, hold?.lots ?? [])
      return lot === undefined
        ? wholeOf(event, "in parts that name a lot twice", say)
        : excess(amountOf(lots, lot), amountOf(hold?.lots ?? [], lot), "released to one lot", say, lot)
    }
  ),

  // A clawback takes its claim from returned credits; a claim on charged credits that no other hold can return becomes debt
  rule(
    "clawback-takes-what-is-released",
    ["OperationSucceeded", "Refunded"],
    (event, step) => {
      const due = dueToClawbacks(event, step)
      if (due === undefined) return undefined
      if (due.repaid !== undefined) return differ(event.claimed ?? [], due.repaid, "the repaid debt of")
      return (
        differ(event.claimed ?? [], due.taken, "the amount that the clawback takes of") ?? differ(owedBy(event), due.owed, "the debt for")
      )
    },
    (event, step, say) => {
      const due = dueToClawbacks(event, step) ?? { taken: [], owed: [] }
      const right = due.repaid ?? due.taken
      const claimed = event.claimed ?? []
      const lot = differing(claimed, right)
      return lot === undefined
        ? excess(
            totalOf(owedBy(event)),
            totalOf(due.owed),
            "made debt for a payment that was taken back",
            say,
            differing(owedBy(event), due.owed)
          )
        : excess(amountOf(claimed, lot), amountOf(right, lot), "kept back for a payment that was taken back", say, lot)
    }
  )
]

type End = EventOf<"OperationSucceeded"> | EventOf<"Refunded">

const owedBy = (event: End): Parts => (event._tag === "OperationSucceeded" ? (event.owed ?? []) : [])

interface Due {
  /** For a refund: the debt that it repays. */
  readonly repaid?: Parts
  readonly taken: Parts
  readonly owed: Parts
}

/** What clawbacks take of the credits that an event returns, and what becomes debt; undefined if there is nothing to compare. */
const dueToClawbacks = (event: End, { before: { purse }, hold }: Step): Due | undefined => {
  const { claimed = [], lots } = event
  if (event._tag === "Refunded" && event.stage === "settled") {
    return { repaid: partsOf(lots, (lotId, amount) => Math.min(amount, amountOf(purse.debts, lotId))), taken: [], owed: [] }
  }
  if (hold === undefined) return undefined
  const charged = event._tag === "OperationSucceeded" ? lots : []
  if (claimed.length === 0 && owedBy(event).length === 0 && !purse.lots.some((lot) => lot.claimed > 0)) return undefined
  const taken = (lotId: string, amount: number) => Math.min(amount - amountOf(charged, lotId), Lots.find(purse.lots, lotId)?.claimed ?? 0)
  const lost = (lotId: string, amount: number) => {
    const lot = Lots.find(purse.lots, lotId)
    return lot === undefined ? 0 : Math.max(0, lot.claimed - taken(lotId, amount) - (lot.held - amount))
  }
  return { taken: partsOf(hold.lots, taken), owed: partsOf(hold.lots, lost) }
}

const partsOf = (parts: Parts, amountFor: (lotId: string, amount: number) => number): Parts =>
  parts.map(({ lotId, amount }) => ({ lotId, amount: amountFor(lotId, amount) }))
