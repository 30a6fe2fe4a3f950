/** Buying credits: a pack, a plan where the host has any, and the invoices. */
import { Buy } from "../billing/Buy.tsx"
import { INVOICES, type Invoiced, Invoices } from "../billing/Invoices.tsx"
import { Plans, SUBSCRIPTIONS } from "../billing/Plans.tsx"
import { useOffered } from "../Context.ts"
import { useData } from "../Data.ts"
import { useChanges } from "../Live.ts"
import { Page } from "../Parts.tsx"

export const Billing = () => {
  const hasInvoices = useOffered("GET", INVOICES)
  const hasPlans = useOffered("GET", SUBSCRIPTIONS)
  const invoices = useData<Invoiced>(hasInvoices ? INVOICES : undefined)
  // A payment that an operator approved brings credits, and has an invoice
  useChanges(({ account, isFirst }) => {
    if (account || isFirst) invoices.again()
  })
  return (
    <Page title="Billing" lead="Credits are bought in packs or by a plan, and every payment has its invoice.">
      <Buy onPaid={invoices.again} />
      {hasPlans ? <Plans onPaid={invoices.again} /> : null}
      {hasInvoices ? <Invoices of={invoices} /> : null}
    </Page>
  )
}
