/** Buying credits: a pack, a plan where the host has any, and the invoices. */
import { useState } from "preact/hooks"
import { Buy } from "../billing/Buy.tsx"
import { INVOICES, type Invoiced, Invoices } from "../billing/Invoices.tsx"
import { OpenPayments } from "../billing/OpenPayments.tsx"
import { TOP_UPS } from "../billing/Payment.tsx"
import { Plans, SUBSCRIPTIONS } from "../billing/Plans.tsx"
import { useOffered } from "../Context.ts"
import { useData } from "../Data.ts"
import { useChanges } from "../Live.ts"
import { Page } from "../Parts.tsx"

export const Billing = () => {
  const hasInvoices = useOffered("GET", INVOICES)
  const hasPayments = useOffered("GET", TOP_UPS)
  const [bought, setBought] = useState<string>()
  const hasPlans = useOffered("GET", SUBSCRIPTIONS)
  const invoices = useData<Invoiced>(hasInvoices ? INVOICES : undefined)
  // A payment that an operator approved brings credits, and has an invoice
  useChanges(({ account, isFirst }) => {
    if (account || isFirst) invoices.again()
  })
  return (
    <Page title="Billing" lead="Credits are bought in packs or by a plan, and every payment has its invoice.">
      <Buy onBought={setBought} onPaid={invoices.again} />
      {hasPayments ? <OpenPayments except={bought} onPaid={invoices.again} /> : null}
      {hasPlans ? <Plans onPaid={invoices.again} /> : null}
      {hasInvoices ? <Invoices of={invoices} /> : null}
    </Page>
  )
}
