/** The pages, in the order of the menu. A page that the host cannot fill is left out. */
import type { ComponentChildren } from "preact"
import { TOP_UPS } from "./billing/Payment.tsx"
import type { Contract } from "./Contract.ts"
import { KEYS } from "./keys/Issue.tsx"
import { Billing } from "./pages/Billing.tsx"
import { Calls } from "./pages/Calls.tsx"
import { INBOXES, Inbox } from "./pages/Inbox.tsx"
import { Jobs } from "./pages/Jobs.tsx"
import { Keys } from "./pages/Keys.tsx"
import { Overview } from "./pages/Overview.tsx"
import { Try } from "./pages/Try.tsx"
import { CALLS } from "./Shapes.ts"

export interface ToolPage {
  /** In the address. */
  readonly name: string
  readonly title: string
  readonly show: (rest: string) => ComponentChildren
}

interface Offered extends ToolPage {
  readonly isOffered: (contract: Contract) => boolean
}

const always = () => true
const offers = (method: string, path: string) => (contract: Contract) => contract.find(method, path) !== undefined

const PAGES: ReadonlyArray<Offered> = [
  { name: "overview", title: "Overview", isOffered: always, show: () => <Overview /> },
  { name: "try", title: "Try", isOffered: always, show: (key) => <Try chosen={key} /> },
  { name: "calls", title: "Calls", isOffered: offers("GET", CALLS), show: () => <Calls /> },
  { name: "jobs", title: "Jobs", isOffered: offers("GET", CALLS), show: () => <Jobs /> },
  { name: "inbox", title: "Inbox", isOffered: offers("POST", INBOXES), show: () => <Inbox /> },
  { name: "keys", title: "Keys", isOffered: offers("GET", KEYS), show: () => <Keys /> },
  { name: "billing", title: "Billing", isOffered: offers("POST", TOP_UPS), show: () => <Billing /> }
]

export const pagesOf = (contract: Contract): ReadonlyArray<ToolPage> => PAGES.filter(({ isOffered }) => isOffered(contract))
