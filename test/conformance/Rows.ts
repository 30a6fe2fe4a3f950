/** Every endpoint of the specification, in its order. */
import type { Row } from "./Row.ts"
import { account } from "./rows/Account.ts"
import { connections } from "./rows/Connections.ts"
import { emailValidation } from "./rows/Email.ts"
import { lookups } from "./rows/Lookups.ts"
import { media } from "./rows/Media.ts"
import { products } from "./rows/Products.ts"
import { readers } from "./rows/Readers.ts"

export const rows: ReadonlyArray<Row> = [...account, ...media, ...lookups, ...products, ...emailValidation, ...connections, ...readers]

/** By key: operations that the specification has no row of. They have tests of their own. */
export const BEYOND: ReadonlySet<string> = new Set([
  "account.activity",
  "account.calls",
  "billing.cancelSubscription",
  "billing.invoice",
  "billing.subscriptions",
  "billing.topups",
  "keys.list",
  "keys.issue",
  "keys.revoke",
  "keys.rotate"
])
