export * as ApiKey from "./accounts/ApiKey.ts"
export { AuthThrottle, clientOf, TooManyFailures } from "./accounts/AuthThrottle.ts"
export { EmailClaim, PaymentClaim, ReferenceClaim } from "./accounts/Claim.ts"
export { type Authenticated, type IssueOptions, KeyRing, type ListedKey, type NewKey, Unauthorized } from "./accounts/KeyRing.ts"
export { type PaidGrant, Payments, PaymentUsed } from "./accounts/Payments.ts"
export { EmailTaken, InvalidEmail, InvalidReference, type Owner, ReferenceTaken, Registration } from "./accounts/Registration.ts"
export { CallInDoubt, CallsInDoubt } from "./billing/CallsInDoubt.ts"
export * as Charge from "./billing/Charge.ts"
export * as PricePlan from "./billing/PricePlan.ts"
export { ofAccount as rateKeyOfAccount, RateLimit, RateLimited, type RateLimitPolicy, type RateLimitState } from "./billing/RateLimit.ts"
export { Recovery } from "./billing/Recovery.ts"
export { Replies, StoredReply } from "./billing/Replies.ts"
export * as Usage from "./billing/Usage.ts"
export * as Credits from "./Credits.ts"
export {
  AccountId,
  Ids,
  lotIdOfPayment,
  newAccountId,
  newGrantId,
  newLotId,
  newProxyNodeId,
  newRequestId,
  newReservationId,
  ReservationId
} from "./Ids.ts"
export * as Inbox from "./inboxes/Inbox.ts"
export * as InboxAddress from "./inboxes/InboxAddress.ts"
export { Inboxes, type InboxesOptions } from "./inboxes/Inboxes.ts"
export { InboxUpkeep, type InboxUpkeepOptions } from "./inboxes/InboxUpkeep.ts"
export {
  type Attachment,
  isUnreadable,
  type Mailbox,
  type MailContent,
  MailReader,
  type MailSummary,
  type Unreadable
} from "./inboxes/MailReader.ts"
export {
  type Authentication,
  InboxFull,
  type Incoming,
  MailReceiver,
  ReceiverUnavailable,
  UnknownAddress
} from "./inboxes/MailReceiver.ts"
export type { FilesStatus } from "./jobs/FileSweeper.ts"
export * as Job from "./jobs/Job.ts"
export * as JobQueue from "./jobs/JobQueue.ts"
export { JobRunner, type RunnerOptions, type RunnerStatus } from "./jobs/JobRunner.ts"
export { Jobs, type JobsOptions } from "./jobs/Jobs.ts"
export { JobUpkeep, type UpkeepOptions } from "./jobs/JobUpkeep.ts"
export * as Account from "./ledger/Account.ts"
export { AccountEvent, type EventOf, RefundReason } from "./ledger/AccountEvent.ts"
export * as AccountSnapshot from "./ledger/AccountSnapshot.ts"
export { AccountUpkeep, type AccountUpkeepOptions } from "./ledger/AccountUpkeep.ts"
export * as Decisions from "./ledger/Decisions.ts"
export * as Generations from "./ledger/Generations.ts"
export * as History from "./ledger/History.ts"
export { type Balance, balanceOf, type Committed, Ledger } from "./ledger/Ledger.ts"
export * as Lots from "./ledger/Lots.ts"
export * as LowBalance from "./ledger/LowBalance.ts"
export * as Memory from "./ledger/Memory.ts"
export * as Periods from "./ledger/Periods.ts"
export * as Postings from "./ledger/Postings.ts"
export * as RecurringGrants from "./ledger/RecurringGrants.ts"
export * as RecurringTerms from "./ledger/RecurringTerms.ts"
export * as Millrace from "./Millrace.ts"
export * as Money from "./Money.ts"
export * as Notices from "./notices/Notices.ts"
export * as Operation from "./Operation.ts"
export * as Metrics from "./observability/Metrics.ts"
export * as Spans from "./observability/Spans.ts"
export * as TraceContext from "./observability/TraceContext.ts"
export * as AccountBilling from "./operations/AccountBilling.ts"
export * as AccountLimits from "./operations/AccountLimits.ts"
export * as ApiPath from "./operations/ApiPath.ts"
export * as Bin from "./operations/Bin.ts"
export * as Catalog from "./operations/Catalog.ts"
export * as CatalogOperations from "./operations/CatalogOperations.ts"
export * as CommonLimits from "./operations/CommonLimits.ts"
export * as Dns from "./operations/Dns.ts"
export * as Email from "./operations/Email.ts"
export * as EmailJobs from "./operations/EmailJobs.ts"
export * as Grammar from "./operations/Grammar.ts"
export * as Image from "./operations/Image.ts"
export * as ImageJobs from "./operations/ImageJobs.ts"
export * as Proxies from "./operations/Proxies.ts"
export * as Speech from "./operations/Speech.ts"
export * as SpeechJobs from "./operations/SpeechJobs.ts"
export * as Standard from "./operations/Standard.ts"
export * as TempMail from "./operations/TempMail.ts"
export * as Topics from "./operations/Topics.ts"
export * as VerificationCodes from "./operations/Verification.ts"
export { ProxyNode, ProxyNodes } from "./proxies/ProxyNodes.ts"
export * as ProxySession from "./proxies/ProxySession.ts"
export { type OpenSession, ProxySessions, type SessionsOptions } from "./proxies/ProxySessions.ts"
export { ProxyUpkeep } from "./proxies/ProxyUpkeep.ts"
export { Timestamp, toIso } from "./Timestamp.ts"
export * as BlobStore from "./vault/BlobStore.ts"
export { generate as generateMasterKey, MalformedMasterKey, MasterKey } from "./vault/MasterKey.ts"
export { MEDIA_TYPE_BYTES, type MediaType, mediaTypeOf } from "./vault/MediaType.ts"
export * as MemoryBlobStore from "./vault/MemoryBlobStore.ts"
export { RandomBytes } from "./vault/RandomBytes.ts"
export * as Vault from "./vault/Vault.ts"
export * as CodeExtractor from "./verification/CodeExtractor.ts"
export * as Sms from "./verification/Sms.ts"
export { e164, type IncomingSms, NotAPublicNumber, SmsReceiver } from "./verification/SmsReceiver.ts"
export * as Verification from "./verification/Verification.ts"
export * as Deliveries from "./webhooks/Deliveries.ts"
export * as Delivery from "./webhooks/Delivery.ts"
export * as Webhook from "./webhooks/Webhook.ts"
export { type Options as WebhookOptions, type Status as WebhookStatus, WebhookDelivery } from "./webhooks/WebhookDelivery.ts"
export {
  type Answer as WebhookAnswer,
  InvalidWebhookUrl,
  type Message as WebhookMessage,
  WebhookNotSent,
  WebhookSender
} from "./webhooks/WebhookSender.ts"
export * as Webhooks from "./webhooks/Webhooks.ts"
export { CircuitBreaker, type CircuitBreakerOptions } from "./work/CircuitBreaker.ts"
export {
  InvalidInput,
  NotFound,
  type OperationError,
  OperationFailed,
  TooManyJobs,
  UpstreamNotConfigured,
  UpstreamUnavailable
} from "./work/OperationError.ts"
