/** Where the operations are that come with Millrace. One that is added or moved does not compile until it is here. */
import type { OperationsOf, Standard } from "../Api.ts"
import type { Routes } from "./Routes.ts"

export type StandardOperation = OperationsOf<Standard>

export const STANDARD_ROUTES: Routes<StandardOperation> = {
  "account.billing": "GET /account/billing",
  "account.limits": "GET /account/limits",
  "bin.lookup": "GET /bin/:bin",
  "catalog.capabilities": "GET /catalog/capabilities",
  "catalog.capability": "GET /catalog/capabilities/:key",
  "catalog.config": "GET /catalog/config",
  "catalog.groups": "GET /catalog/groups",
  "catalog.read": "GET /catalog",
  "dns.resolve": "GET /dns/:domain",
  "email.validate": "POST /email/validate",
  "email.validateBatch": "POST /email/validate-batch",
  "grammar.check": "POST /grammar/check",
  "topics.list": "GET /content/prompts/topics"
}
