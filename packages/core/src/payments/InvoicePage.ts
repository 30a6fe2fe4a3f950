/** An invoice or a credit note as a page of HTML that prints to one sheet of paper. It loads nothing and runs nothing. */
import { createHash } from "node:crypto"
import { toText } from "./Amount.ts"
import type { InvoiceEvent, Line } from "./Invoice.ts"

/** What the page tells beside the document. */
export interface Context {
  /** Whom it is for: the address of the account, as far as it is known. */
  readonly buyer: string | undefined
  /** What became of an invoice, for people; undefined for a credit note. */
  readonly standing: string | undefined
}

const CSS = `
:root { color-scheme: light; font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; color: #17211f; background: #f4f5f3 }
* { box-sizing: border-box }
body { margin: 0; padding: 1.5rem 1rem }
main { max-width: 46rem; margin: 0 auto; padding: 2.5rem clamp(1.25rem, 5vw, 3rem); background: #fff; border: 1px solid #dfe3e0; border-radius: 0.5rem }
header { display: flex; flex-wrap: wrap; gap: 1rem 2rem; justify-content: space-between; align-items: start }
h1 { margin: 0; font-size: 1.75rem; line-height: 1.2 }
.number, dd, .amount { font-variant-numeric: tabular-nums }
.number { margin: 0.25rem 0 0; color: #4a5754 }
.seller { margin: 0; white-space: pre-line; text-align: right; overflow-wrap: anywhere }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 1rem; margin: 2rem 0 }
dt { color: #4a5754; font-size: 0.8125rem }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere }
table { width: 100%; border-collapse: collapse }
th, td { padding: 0.6rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #dfe3e0 }
th { color: #4a5754; font-size: 0.8125rem; font-weight: 600 }
.amount { text-align: right; white-space: nowrap; padding-left: 1rem }
tfoot th, tfoot td { border-bottom: 0; padding: 0.35rem 0 }
tfoot tr:last-child > * { padding-top: 0.6rem; border-top: 2px solid #17211f; font-weight: 700; font-size: 1.0625rem; color: #17211f }
footer { margin-top: 2.5rem; color: #4a5754; font-size: 0.8125rem; overflow-wrap: anywhere }
@media (max-width: 30rem) { .wide { display: none } .seller { text-align: left } }
@page { size: A4; margin: 18mm }
@media print { :root { background: #fff } body { padding: 0 } main { border: 0; padding: 0; max-width: none } }
`

/** The policy of the page: its own style, and nothing else. */
export const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(CSS).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }

const text = (value: string): string => value.replaceAll(/[&<>"']/gu, (character) => ENTITIES[character] ?? character)

/** A rate in percent: `19 %` for 1900. */
const percent = (rate: number): string => `${rate / 100} %`

/** A decimal with its thousands apart: `1,234,567.00`. */
const grouped = (decimal: string): string => decimal.replace(/\B(?=(?:\d{3})+(?:\.|$))/gu, ",")

/** The page of a document. */
export const render = (document: InvoiceEvent, { buyer, standing }: Context): string => {
  const { currency, gateway, invoice, issuedAt, lines, net, number, paymentId, seller, tax, taxed, total } = document
  const isInvoice = document._tag === "InvoiceIssued"
  const title = isInvoice ? "Invoice" : "Credit note"
  const money = (minor: number): string => `${minor < 0 ? "-" : ""}${grouped(toText({ minor: Math.abs(minor), currency }))}`
  const cell = (minor: number, kind = "amount"): string => `<td class="${kind}">${money(minor)}</td>`
  const row = (line: Line): string =>
    `<tr><td>${text(line.description)}</td>${cell(line.net, "amount wide")}${cell(line.tax, "amount wide")}${cell(line.total)}</tr>`
  const fact = (term: string, value: string | undefined): string =>
    value === undefined ? "" : `<div><dt>${term}</dt><dd>${text(value)}</dd></div>`
  const sum = (label: string, minor: number): string =>
    `<tr><th scope="row">${text(label)}</th><td class="wide"></td><td class="wide"></td>${cell(minor)}</tr>`
  const taxName = taxed === undefined ? "Tax" : `${taxed.name} ${percent(taxed.rate)}, ${taxed.region}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} ${text(number)}</title>
<style>${CSS}</style>
</head>
<body>
<main>
<header>
<div><h1>${title}</h1><p class="number">${text(number)}</p></div>
<p class="seller">${text(seller)}</p>
</header>
<dl>
${fact("Date", new Date(issuedAt).toISOString().slice(0, 10))}
${fact("For", buyer)}
${fact("Status", standing)}
${fact(isInvoice ? "Takes back credit notes of" : "For invoice", invoice)}
</dl>
<table>
<thead><tr><th scope="col">What</th><th scope="col" class="amount wide">Net</th><th scope="col" class="amount wide">Tax</th><th scope="col" class="amount">${text(currency)}</th></tr></thead>
<tbody>${lines.map(row).join("")}</tbody>
<tfoot>${sum("Net", net)}${sum(taxName, tax)}${sum(isInvoice ? "Total" : "Total credited", total)}</tfoot>
</table>
<footer>Payment ${text(paymentId)} by ${text(gateway)}. Account ${text(document.accountId)}.</footer>
</main>
</body>
</html>
`
}
