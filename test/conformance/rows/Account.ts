/** Account, billing, catalog and discovery. */
import { choice, paymentId, type Row, row, text } from "../Row.ts"

const ANSWER = ["answer"]
const open = { authentication: "none", notShown: ANSWER } as const

export const account: ReadonlyArray<Row> = [
  row("GET", "/account/billing", "account.billing", { notShown: ANSWER }),
  row("GET", "/account/limits", "account.limits", { notShown: ANSWER }),
  row("GET", "/billing/invoices", "billing.invoices", { notShown: ANSWER }),
  row("POST", "/billing/subscriptions", "billing.subscribe", {
    body: { plan: text({ sample: "standard", ofLength: null }) },
    notShown: ANSWER
  }),
  row("POST", "/billing/topups", "billing.topUp", { body: { pack: choice(["10", "25", "50", "100"]) }, notShown: ANSWER }),
  row("POST", "/billing/topups/{payment}/capture", "billing.captureTopUp", { path: { payment: paymentId() }, notShown: ANSWER }),
  row("GET", "/catalog", "catalog.read", open),
  row("GET", "/catalog/capabilities", "catalog.capabilities", open),
  row("GET", "/catalog/capabilities/{key}", "catalog.capability", {
    ...open,
    path: { key: text({ required: true, sample: "bin.lookup", ofLength: null, unknown: "bin.invent" }) }
  }),
  row("GET", "/catalog/config", "catalog.config", open),
  row("GET", "/catalog/groups", "catalog.groups", open),
  row("GET", "/openapi.json", "catalog.openapi", { authentication: "none", answer: "document" })
]
