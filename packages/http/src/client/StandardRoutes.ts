/** The routes of the standard operations. An operation that is added or moved does not compile until it is here. */
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
  "email.readValidationJob": "GET /email/validation-jobs/:job",
  "email.validationJob": "POST /email/validation-jobs",
  "grammar.check": "POST /grammar/check",
  "image.cancel": "DELETE /ai/images/:job",
  "image.download": "GET /ai/images/:job/artifact as file",
  "image.edit": "POST /ai/images/edit",
  "image.generate": "POST /ai/images",
  "image.read": "GET /ai/images/:job",
  "speech.cancel": "DELETE /audio/tts/:job",
  "speech.download": "GET /audio/tts/:job/artifact as file",
  "speech.read": "GET /audio/tts/:job",
  "speech.synthesize": "POST /audio/tts",
  "speech.voices": "GET /audio/voices",
  "topics.list": "GET /content/prompts/topics"
}
