/** The score of an address. */
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

/** From 0 to 1. It is 0 if and only if mail cannot be delivered. */
export const scoreOf = ({ delivery, healthy, disposable, role }: Findings): number => {
  const score = Math.max(0, DELIVERY[delivery] - (role ? ROLE : 0) - (healthy ? 0 : UNSOUND))
  return (disposable ? Math.min(score, MOST_IF_DISPOSABLE) : score) / 100
}
