/** The invoices and credit notes of the account, each with its page to print. */
import { useState } from "preact/hooks"
import type { Loaded } from "../Data.ts"
import { fileName } from "../FileName.ts"
import { Badge, Card, Empty, Trouble, Waiting } from "../Parts.tsx"
import { currentAccess, type Refused, refusalOf, refusedBy, send } from "../Requests.ts"
import { dayOfYear, money } from "../Text.ts"

export const INVOICES = "/api/v1/billing/invoices"

interface Invoice {
  readonly number: string
  readonly kind: "invoice" | "credit_note"
  readonly issued_at: string
  readonly currency: string
  readonly total: number
  readonly status: "paid" | "partly_refunded" | "refunded" | "issued"
  readonly lines: ReadonlyArray<{ readonly description: string }>
  readonly url: string
}

export interface Invoiced {
  readonly invoices: ReadonlyArray<Invoice>
}

const WORDS: Readonly<Record<Invoice["status"], string>> = {
  paid: "paid",
  partly_refunded: "partly refunded",
  refunded: "refunded",
  issued: "credit note"
}

export const Invoices = ({ of: { again, data, refused } }: { readonly of: Loaded<Invoiced> }) => (
  <Card title="Invoices">
    {data === undefined ? refused === undefined ? <Waiting /> : <Trouble refused={refused} again={again} /> : null}
    {data?.invoices.length === 0 ? <Empty>There is no invoice yet. Each payment has one, when its money is there.</Empty> : null}
    <ul class="lines">
      {data?.invoices.map((invoice) => (
        <InvoiceLine key={invoice.number} of={invoice} />
      ))}
    </ul>
  </Card>
)

const InvoiceLine = ({ of: { currency, issued_at, kind, lines, number, status, total, url } }: { readonly of: Invoice }) => {
  const [refused, setRefused] = useState<Refused>()
  const minus = kind === "credit_note" ? "\u2212" : ""
  return (
    <li class="line invoice">
      <span class="line-name">
        <InvoiceLink url={url} number={number} onRefused={setRefused} />
        <br />
        <span class="hint">{lines.map(({ description }) => description).join(", ")}</span>
      </span>
      <Badge tone={status === "paid" ? "good" : "calm"}>{WORDS[status]}</Badge>
      <span class="line-amount">
        {minus}
        {money(total, currency)}
      </span>
      <time class="line-time" dateTime={issued_at}>
        {dayOfYear(issued_at)}
      </time>
      {refused === undefined ? null : <Trouble refused={refused} />}
    </li>
  )
}

interface LinkProps {
  readonly url: string
  readonly number: string
  readonly onRefused: (refused: Refused) => void
}

/**
 * A link sends the cookie of a session, but no key: with a key, the page is fetched, and saved. Opened from memory, it would have the policy of
 * the tool, which refuses its style.
 */
const InvoiceLink = ({ number, onRefused, url }: LinkProps) => {
  const open = async (event: MouseEvent) => {
    if (currentAccess().by !== "key") return
    event.preventDefault()
    try {
      const answer = await send({ method: "GET", path: url })
      if (answer.file === undefined) throw refusalOf(answer)
      const link = document.createElement("a")
      link.href = URL.createObjectURL(answer.file)
      link.download = fileName(number, answer.file.type)
      link.click()
      URL.revokeObjectURL(link.href)
    } catch (error) {
      onRefused(refusedBy(error))
    }
  }
  return (
    <a href={url} target="_blank" rel="noreferrer" onClick={open}>
      {number}
    </a>
  )
}
