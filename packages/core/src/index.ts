export * as ApiKey from "./accounts/ApiKey.ts"
export { AuthThrottle, clientOf, TooManyFailures } from "./accounts/AuthThrottle.ts"
export { EmailClaim, ReferenceClaim } from "./accounts/Claim.ts"
export * as EmailAddress from "./accounts/EmailAddress.ts"
export { type Authenticated, type IssueOptions, KeyRing, type ListedKey, type NewKey, Unauthorized } from "./accounts/KeyRing.ts"
export { MailNotConfigured, MailNotSent, type MailOutcome, MailRelay, type OutgoingMail } from "./accounts/MailRelay.ts"
export * as Passkey from "./accounts/Passkey.ts"
export * as PasskeyChallenge from "./accounts/PasskeyChallenge.ts"
export { type FoundPasskey, type ListedPasskey, Passkeys, TooManyPasskeys } from "./accounts/Passkeys.ts"
export { PublicAddress } from "./accounts/PublicAddress.ts"
export { EmailTaken, InvalidEmail, InvalidReference, type Owner, ReferenceTaken, Registration } from "./accounts/Registration.ts"
export * as Session from "./accounts/Session.ts"
export { type Client, type ListedSession, type NewSession, SessionNotFound, Sessions, type SignedIn } from "./accounts/Sessions.ts"
export { SessionUpkeep } from "./accounts/SessionUpkeep.ts"
export { type Ask, type Asked, type Follow, SignIn } from "./accounts/SignIn.ts"
export * as SignInLink from "./accounts/SignInLink.ts"
export { SignUps } from "./accounts/SignUps.ts"
export * as Token from "./accounts/Token.ts"
export * as PriceAlert from "./alerts/PriceAlert.ts"
export { END_PATH as ALERT_END_PATH, LIMIT as ALERT_LIMIT, PriceAlerts, TooManyAlerts } from "./alerts/PriceAlerts.ts"
export { PriceAlertUpkeep } from "./alerts/PriceAlertUpkeep.ts"
export { CallHistory } from "./billing/CallHistory.ts"
export { CallInDoubt, CallsInDoubt } from "./billing/CallsInDoubt.ts"
export * as Charge from "./billing/Charge.ts"
export * as PricePlan from "./billing/PricePlan.ts"
export { ofAccount as rateKeyOfAccount, RateLimit, RateLimited, type RateLimitPolicy, type RateLimitState } from "./billing/RateLimit.ts"
export { Recovery } from "./billing/Recovery.ts"
export { Replies, StoredReply } from "./billing/Replies.ts"
export * as Usage from "./billing/Usage.ts"
export * as Credits from "./Credits.ts"
export { DailyLimitReached, MOST_A_DAY } from "./coupons/Contributions.ts"
export * as CouponRank from "./coupons/CouponRank.ts"
export * as CouponSearch from "./coupons/CouponSearch.ts"
export * as CouponStore from "./coupons/CouponStore.ts"
export { Coupons, type CouponsOptions, type Found as FoundCoupons, type Query as CouponQuery } from "./coupons/Coupons.ts"
export {
  AccountId,
  Ids,
  lotIdOfPayment,
  newAccountId,
  newGrantId,
  newLotId,
  newPaymentId,
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
export * as ClusterAddress from "./leading/Address.ts"
export { ClusterUnavailable, Leading, type LeadingOptions } from "./leading/Leading.ts"
export * as LedCharge from "./leading/LedCharge.ts"
export * as ClusterProbe from "./leading/Probe.ts"
export * as Account from "./ledger/Account.ts"
export { AccountEvent, type EventOf, RefundReason } from "./ledger/AccountEvent.ts"
export * as AccountSnapshot from "./ledger/AccountSnapshot.ts"
export { AccountUpkeep, type AccountUpkeepOptions } from "./ledger/AccountUpkeep.ts"
export * as Decisions from "./ledger/Decisions.ts"
export * as History from "./ledger/History.ts"
export { type Balance, balanceOf, type Committed, Ledger } from "./ledger/Ledger.ts"
export * as Lots from "./ledger/Lots.ts"
export * as LowBalance from "./ledger/LowBalance.ts"
export * as Memory from "./ledger/Memory.ts"
export * as NewestEntries from "./ledger/NewestEntries.ts"
export * as Periods from "./ledger/Periods.ts"
export * as Postings from "./ledger/Postings.ts"
export * as RecurringGrants from "./ledger/RecurringGrants.ts"
export * as RecurringTerms from "./ledger/RecurringTerms.ts"
export * as AccountWatch from "./live/AccountWatch.ts"
export * as Millrace from "./Millrace.ts"
export * as Money from "./Money.ts"
export * as Notices from "./notices/Notices.ts"
export * as Operation from "./Operation.ts"
export * as Metrics from "./observability/Metrics.ts"
export * as Spans from "./observability/Spans.ts"
export * as TraceContext from "./observability/TraceContext.ts"
export * as AccountActivity from "./operations/AccountActivity.ts"
export * as AccountBilling from "./operations/AccountBilling.ts"
export * as AccountCalls from "./operations/AccountCalls.ts"
export * as AccountLimits from "./operations/AccountLimits.ts"
export * as ApiPath from "./operations/ApiPath.ts"
export * as Billing from "./operations/Billing.ts"
export * as Bin from "./operations/Bin.ts"
export * as Catalog from "./operations/Catalog.ts"
export * as CatalogOperations from "./operations/CatalogOperations.ts"
export * as CodeHost from "./operations/CodeHost.ts"
export * as CommonLimits from "./operations/CommonLimits.ts"
export * as CouponOperations from "./operations/Coupons.ts"
export * as Dns from "./operations/Dns.ts"
export * as Email from "./operations/Email.ts"
export * as EmailJobs from "./operations/EmailJobs.ts"
export * as Grammar from "./operations/Grammar.ts"
export * as Image from "./operations/Image.ts"
export * as ImageJobs from "./operations/ImageJobs.ts"
export * as Keys from "./operations/Keys.ts"
export * as Leads from "./operations/Leads.ts"
export * as PriceAlertOperations from "./operations/PriceAlerts.ts"
export * as PriceCompare from "./operations/PriceCompare.ts"
export * as PriceHistory from "./operations/PriceHistory.ts"
export * as Proxies from "./operations/Proxies.ts"
export * as Selectors from "./operations/Selectors.ts"
export * as Speech from "./operations/Speech.ts"
export * as SpeechJobs from "./operations/SpeechJobs.ts"
export * as Standard from "./operations/Standard.ts"
export * as StoreCatalog from "./operations/StoreCatalog.ts"
export * as SubscriptionOperations from "./operations/Subscriptions.ts"
export * as TempMail from "./operations/TempMail.ts"
export * as Topics from "./operations/Topics.ts"
export * as VerificationCodes from "./operations/Verification.ts"
export * as Video from "./operations/Video.ts"
export * as Amount from "./payments/Amount.ts"
export {
  Checkout,
  type CheckoutOptions,
  type NewOrder,
  NoGateway,
  PaymentNotFound,
  RefundTooLarge,
  type Requested
} from "./payments/Checkout.ts"
export * as Invoice from "./payments/Invoice.ts"
export { InvoiceBook } from "./payments/InvoiceBook.ts"
export * as InvoiceDrafts from "./payments/InvoiceDrafts.ts"
export { Invoices } from "./payments/Invoices.ts"
export * as ManualGateway from "./payments/ManualGateway.ts"
export * as ManualPayment from "./payments/ManualPayment.ts"
export * as MoneyPostings from "./payments/MoneyPostings.ts"
export * as Packs from "./payments/Packs.ts"
export * as Payment from "./payments/Payment.ts"
export { PaymentBook } from "./payments/PaymentBook.ts"
export * as PaymentGateway from "./payments/PaymentGateway.ts"
export { lotsOf, type PaidGrant, PaymentMadeHere, Payments, PaymentUsed } from "./payments/Payments.ts"
export { PaymentUpkeep } from "./payments/PaymentUpkeep.ts"
export * as Plans from "./payments/Plans.ts"
export * as Subscription from "./payments/Subscription.ts"
export { PlanNotFound, SubscriptionNotFound, type SubscriptionOptions, Subscriptions } from "./payments/Subscriptions.ts"
export { SubscriptionUpkeep } from "./payments/SubscriptionUpkeep.ts"
export type { Offer } from "./prices/Offer.ts"
export { type Found as FoundOffer, Offers } from "./prices/Offers.ts"
export { type Observation, PriceObservations } from "./prices/PriceObservations.ts"
export * as PriceSeries from "./prices/PriceSeries.ts"
export * as Product from "./prices/Product.ts"
export * as ProductIdentity from "./prices/ProductIdentity.ts"
export * as TitleSimilarity from "./prices/TitleSimilarity.ts"
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
export { CircuitBreaker, type CircuitBreakerOptions, type CircuitStatus } from "./work/CircuitBreaker.ts"
export { DailyQuotas, type Quota, type Standing as QuotaStanding, type Terms as QuotaTerms } from "./work/DailyQuota.ts"
export {
  AddressNotVerified,
  DownloadUnavailable,
  InvalidInput,
  NotFound,
  type OperationError,
  OperationFailed,
  TooManyJobs,
  TooManyPayments,
  TooManySubmissions,
  UpstreamNotConfigured,
  UpstreamUnavailable
} from "./work/OperationError.ts"
export { Pace, PaceAccount, type Terms as PaceTerms } from "./work/Pace.ts"
