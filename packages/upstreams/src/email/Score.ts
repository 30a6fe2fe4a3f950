/** How far an address can be trusted, as one number. */
import type { MailDomain } from "./MailDomain.ts"

export interface Findings extends MailDomain {
  readonly disposable: boolean
  readonly role: boolean
}

// In hundredths, which add up exactly

const DELIVERY: Readonly<Record<MailDomain["delivery"], number>> = { mx: 90, address: 50, none: 0 }
const ROLE = 15
const UNSOUND = 10
const MOST_IF_DISPOSABLE = 10

/** From 0 to 1; 0 exactly where mail goes nowhere. */
export const scoreOf = ({ delivery, healthy, disposable, role }: Findings): number => {
  const score = Math.max(0, DELIVERY[delivery] - (role ? ROLE : 0) - (healthy ? 0 : UNSOUND))
  return (disposable ? Math.min(score, MOST_IF_DISPOSABLE) : score) / 100
}
