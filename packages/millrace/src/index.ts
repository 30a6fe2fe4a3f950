/** Millrace as promises, for hosts without Effect. */

export type { Head, Report as AuditReport } from "@millrace/audit"
export type {
  ShownDelivery,
  ShownWebhook,
  Trial as WebhookTrial,
  WebhookOptions as NewWebhook,
  WebhookReport
} from "./administration/Webhooks.ts"
export type { Administration, Grant, Recorded, RecurringGrant } from "./host/Administration.ts"
export { MillraceError } from "./host/Failures.ts"
export * from "./host/Host.ts"
export type { Addresses, CertificateFiles, ClusterOptions, MailOptions, ProxyOptions, SmsOptions } from "./host/Incoming.ts"
export { type Accepted, type Artifact, type Companions, type Content, type Job, type JobContext, type JobView, job } from "./host/Job.ts"
export type { JobActs, JobFile, Owner } from "./host/Jobs.ts"
export type { Listening, Notice, NoticeName, Notices } from "./host/Notices.ts"
export {
  type CallContext,
  type Described,
  type Input,
  type Method,
  type Operation,
  operation,
  type Parsed,
  type Path,
  type Route
} from "./host/Operation.ts"
export type * from "./host/Options.ts"
export type { Proxies } from "./host/Proxies.ts"
export type { AccountEvent, AuditOptions, Reports } from "./host/Reports.ts"
export type { OutgoingMail, SendMail, SignInOptions } from "./host/SignInOptions.ts"
export { type StandardName, type StandardOperations, standard } from "./host/Standard.ts"
export { InvalidInput, NotFound, UpstreamUnavailable } from "./host/Throwable.ts"
export type { Webhooks } from "./host/Webhooks.ts"
export { charging, Result, type Returned } from "./host/Work.ts"
