/** `holds`: open holds of all accounts. */
import * as Administration from "../Administration.ts"
import * as Holds from "../administration/Holds.ts"
import * as Progress from "../Progress.ts"
import * as StoreUrl from "../StoreUrl.ts"

const list = Administration.query(
  "list",
  "List every open hold; one that is overdue ends with its account's next decision, or by recovery",
  { "millrace holds list": "List the open holds of all accounts" },
  StoreUrl.logLayer,
  {},
  () => Progress.watch("Reading the log")(Holds.list)
)

export const holds = Administration.group("holds", "Look at open holds", [list])
