/**
 * The routes of the standard operations, written by `npm run routes` from the registry in core. They stand here as data because a web page
 * that imported the operations would load 320 kB instead of 7.
 */
import type { OperationsOf, Standard } from "../Api.ts"
import type { Routes } from "./Routes.ts"

export type StandardOperation = OperationsOf<Standard>

export const STANDARD_ROUTES: Routes<StandardOperation> = {
  "catalog.read": "GET /catalog",
  "catalog.capabilities": "GET /catalog/capabilities",
  "catalog.capability": "GET /catalog/capabilities/:key",
  "catalog.config": "GET /catalog/config",
  "catalog.groups": "GET /catalog/groups",
  "account.billing": "GET /account/billing",
  "account.limits": "GET /account/limits",
  "account.activity": "GET /account/activity",
  "account.calls": "GET /account/calls",
  "billing.topUp": "POST /billing/topups",
  "billing.captureTopUp": "POST /billing/topups/:payment/capture",
  "billing.subscribe": "POST /billing/subscriptions",
  "billing.subscriptions": "GET /billing/subscriptions",
  "billing.cancelSubscription": "DELETE /billing/subscriptions/:subscription?now",
  "billing.invoices": "GET /billing/invoices",
  "billing.invoice": "GET /billing/invoices/:invoice as file",
  "keys.list": "GET /account/keys",
  "keys.issue": "POST /account/keys",
  "keys.revoke": "DELETE /account/keys/:key",
  "keys.rotate": "POST /account/keys/:key/rotate",
  "grammar.check": "POST /grammar/check",
  "bin.lookup": "GET /bin/:bin",
  "dns.resolve": "GET /dns/:domain",
  "topics.list": "GET /content/prompts/topics",
  "prices.history": "GET /products/price-history",
  "selectors.find": "GET /products/selectors",
  "email.validate": "POST /email/validate",
  "email.validateBatch": "POST /email/validate-batch",
  "email.validationJob": "POST /email/validation-jobs",
  "email.readValidationJob": "GET /email/validation-jobs/:job",
  "inbox.create": "POST /temp-mail/inboxes",
  "inbox.read": "GET /temp-mail/inboxes/:inbox",
  "inbox.listMessages": "GET /temp-mail/inboxes/:inbox/messages",
  "inbox.readMessage": "GET /temp-mail/inboxes/:inbox/messages/:message",
  "inbox.downloadAttachment": "GET /temp-mail/inboxes/:inbox/messages/:message/attachments/:attachment as file",
  "inbox.downloadMessage": "GET /temp-mail/inboxes/:inbox/messages/:message/raw as file",
  "inbox.rotate": "POST /temp-mail/inboxes/:inbox/rotate",
  "inbox.delete": "DELETE /temp-mail/inboxes/:inbox",
  "image.generate": "POST /ai/images",
  "image.edit": "POST /ai/images/edit",
  "image.read": "GET /ai/images/:job",
  "image.cancel": "DELETE /ai/images/:job",
  "image.download": "GET /ai/images/:job/artifact as file",
  "speech.synthesize": "POST /audio/tts",
  "speech.read": "GET /audio/tts/:job",
  "speech.cancel": "DELETE /audio/tts/:job",
  "speech.download": "GET /audio/tts/:job/artifact as file",
  "speech.voices": "GET /audio/voices",
  "verification.wait": "POST /verify/wait",
  "proxy.locations": "GET /proxy/locations",
  "proxy.createSession": "POST /proxy/sessions"
}
