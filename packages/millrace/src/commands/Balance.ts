/** `balance`: what an account has, now or at a past time. */
import { Ledger } from "@millrace/core"
import { Layer, Option } from "effect"
import * as Administration from "../Administration.ts"
import * as Credits from "../administration/Credits.ts"
import * as StoreUrl from "../StoreUrl.ts"

export const balance = Administration.query(
  "balance",
  "Show what an account has: available, held, owed, by lot and by hold; in credits",
  {
    "millrace balance --account acc_01M7YKD46JCP6VGMKADN3JSPJP": "Show the current balance",
    "millrace balance --account acc_01M7YKD46JCP6VGMKADN3JSPJP --at 2026-12-31T00:00:00Z": "Show the balance at the end of the year"
  },
  (store) => Layer.provide(Ledger.layer(), StoreUrl.logLayer(store)),
  { account: Administration.account, at: Administration.time("at", "As of this instant; now, when left out") },
  ({ account, at }) => Credits.balanceOf(account, Option.getOrUndefined(at))
)
