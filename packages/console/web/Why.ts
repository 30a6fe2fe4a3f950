/** Why a call cost what it did: its steps in time, in words. */
import type { Call } from "./Shapes.ts"
import { amount, counted, credits, lasting } from "./Text.ts"

export interface Step {
  readonly name: string
  /** Null while it has not come. */
  readonly at: string | null
  readonly text: string
  readonly tone: "good" | "bad" | "busy" | "calm"
}

const REASONS: Readonly<Record<string, string>> = {
  service_error: "the service behind it failed",
  cancelled: "it was cancelled",
  expired: "its hold ended before it did",
  abandoned: "nobody was there to take the result",
  goodwill: "the host gave it back"
}

export const reasonOf = (reason: string | null): string => (reason === null ? "" : (REASONS[reason] ?? reason))

const priceOf = ({ held, operation, price_version, quantity }: Call): string => {
  if (price_version === null) return "A trial call has no price."
  return `${credits(held)} for ${counted(quantity, "unit")} of ${operation}, by version ${price_version} of the prices.`
}

/** The steps of a call, in their order. */
export const stepsOf = (call: Call): ReadonlyArray<Step> => {
  const { charged, ended_at, held, outcome, reason, refunded, refunded_at, started_at } = call
  const work = ended_at === null ? undefined : Date.parse(ended_at) - Date.parse(started_at)
  const steps: Array<Step> = [
    { name: "Held", at: started_at, text: priceOf(call), tone: "calm" },
    {
      name: call.job_id === null ? "Work" : "Job",
      at: null,
      text: work === undefined ? "It runs." : `It took ${lasting(work)}.`,
      tone: work === undefined ? "busy" : "calm"
    }
  ]
  if (outcome === "released")
    steps.push({
      name: "Given back",
      at: ended_at,
      text: `${call.price_version === null ? "The trial call" : `All ${amount(held)}`}, because ${reasonOf(reason)}. It cost nothing.`,
      tone: "calm"
    })
  if (charged !== null && outcome !== "released") {
    const rest = Math.round((held - charged) * 1_000) / 1_000
    const text =
      call.price_version === null
        ? "A trial call was used."
        : `${credits(charged)}${rest > 0 ? `; the other ${amount(rest)} went back` : ""}.`
    steps.push({ name: "Charged", at: ended_at, text, tone: "good" })
  }
  if (refunded_at !== null)
    steps.push({ name: "Refunded", at: refunded_at, text: `${credits(refunded)}, because ${reasonOf(reason)}.`, tone: "calm" })
  return steps
}
