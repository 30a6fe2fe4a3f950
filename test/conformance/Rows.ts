/** Every endpoint of the specification, in its order, and those of them that are still to come. */
import type { Row } from "./Row.ts"
import { account } from "./rows/Account.ts"
import { connections } from "./rows/Connections.ts"
import { emailValidation } from "./rows/Email.ts"
import { lookups } from "./rows/Lookups.ts"
import { media } from "./rows/Media.ts"
import { products } from "./rows/Products.ts"
import { readers } from "./rows/Readers.ts"

export const rows: ReadonlyArray<Row> = [...account, ...media, ...lookups, ...products, ...emailValidation, ...connections, ...readers]

/**
 * By key: what no server answers yet. Whoever serves one of them takes it off this list, and it is driven; a test fails for what is
 * listed and served, and for what is neither.
 */
const NOT_YET_SERVED: ReadonlySet<string> = new Set(["priceAlerts.register", "video.download"])

/** By key: operations that the specification has no row of. They have tests of their own. */
export const BEYOND: ReadonlySet<string> = new Set([
  "account.activity",
  "account.calls",
  "billing.cancelSubscription",
  "billing.invoice",
  "billing.subscriptions",
  "keys.list",
  "keys.issue",
  "keys.revoke",
  "keys.rotate"
])

export const served: ReadonlyArray<Row> = rows.filter(({ key }) => !NOT_YET_SERVED.has(key))
export const notYetServed: ReadonlyArray<string> = [...NOT_YET_SERVED]
