/** One call in a list: what was called, how it ended, what it cost and when. */

import { Badge } from "./Parts.tsx"
import type { Call, Outcome } from "./Shapes.ts"
import { amount, minute } from "./Text.ts"

export const OUTCOMES: Readonly<Record<Outcome, { readonly text: string; readonly tone: "good" | "bad" | "busy" | "calm" }>> = {
  running: { text: "Running", tone: "busy" },
  charged: { text: "Charged", tone: "good" },
  released: { text: "Given back", tone: "calm" },
  refunded: { text: "Refunded", tone: "calm" }
}

/** What a call costs as it stands: while it runs, what is held. */
export const costOf = ({ charged, held, outcome, refunded }: Call): number =>
  outcome === "running" ? held : Math.round(((charged ?? 0) - refunded) * 1_000) / 1_000

export const CallLine = ({ as: Element, call }: { readonly call: Call; readonly as: "li" | "summary" }) => {
  const { text, tone } = OUTCOMES[call.outcome]
  return (
    <Element class="line">
      <span class="line-name">{call.operation}</span>
      <Badge tone={tone}>{text}</Badge>
      <span class="line-amount">{amount(costOf(call))}</span>
      <time class="line-time" dateTime={call.started_at}>
        {minute(call.started_at)}
      </time>
    </Element>
  )
}
