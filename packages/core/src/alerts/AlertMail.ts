/** The mail of a fall. What a caller wrote stands in it as text of one line, so that it adds no header and no link of its own. */

import type { OutgoingMail } from "../accounts/MailRelay.ts"
import { toIso } from "../Timestamp.ts"
import type { Sending, Waiting } from "./PriceAlert.ts"

/** What the mail names. */
export interface Product {
  readonly name: string
  readonly url: string
}

export interface Letter {
  readonly to: string
  readonly product: Product
  readonly target: string
  /** The fall, and its price. */
  readonly fall: Pick<Waiting | Sending, "fall" | "observed">
  readonly alertId: string
  /** How the host calls itself. */
  readonly service: string
  /** Where people reach the host. */
  readonly host: URL
  /** The address that ends the alert. */
  readonly unsubscribe: string
  readonly now: number
}

/** Code points of a name in a subject. */
const SUBJECT = 80

/** One line without control characters, and without those that turn the direction of text or hide it. */
const lineOf = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim()

const shortened = (text: string): string => {
  const points = [...text]
  return points.length <= SUBJECT
    ? text
    : `${points
        .slice(0, SUBJECT - 1)
        .join("")
        .trimEnd()}…`
}

const moneyOf = (price: string, currency: string | null): string => (currency === null ? price : `${price} ${currency}`)

/** The same for each attempt to tell of one fall, so that a relay or a mailbox can drop what comes twice. */
export const messageIdOf = (alertId: string, fall: number, { hostname }: URL): string => `price-alert.${alertId}.${fall}@${hostname}`

export const mailOf = ({
  alertId,
  fall: { fall, observed },
  host,
  now,
  product,
  service,
  target,
  to,
  unsubscribe
}: Letter): OutgoingMail => {
  const name = lineOf(product.name) || "Your product"
  // As browsers write it, an address has no line breaks
  const url = URL.parse(product.url)?.href ?? ""
  return {
    to,
    subject: `Price alert: ${shortened(name)}`,
    text: `${name}
costs ${moneyOf(observed.price, observed.currency)} now. You asked ${service} to tell you at ${target} or below.

${url}

${service} read this price by itself, and wrote this mail at ${toIso(now)}. The shop may have changed it since.
You get one mail for each fall of the price. To end this alert:

${unsubscribe}
`,
    messageId: messageIdOf(alertId, fall, host),
    unsubscribe
  }
}
