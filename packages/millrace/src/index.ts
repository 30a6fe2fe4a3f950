/** Millrace as promises, for hosts without Effect. */

export type { Head, Report as AuditReport } from "@millrace/audit"
export type {
  ShownDelivery,
  ShownWebhook,
  Trial as WebhookTrial,
  WebhookOptions as NewWebhook,
  WebhookReport
} from "./administration/Webhooks.ts"
export * from "./host/Administration.ts"
export * from "./host/Failures.ts"
export * from "./host/Host.ts"
export * from "./host/Job.ts"
export * from "./host/Jobs.ts"
export type { Listening, Notice, NoticeName, Notices } from "./host/Notices.ts"
export * from "./host/Operation.ts"
export type * from "./host/Options.ts"
export type { AccountEvent, AuditOptions, Reports } from "./host/Reports.ts"
export { type StandardName, type StandardOperations, standard } from "./host/Standard.ts"
export { InvalidInput, NotFound, UpstreamUnavailable } from "./host/Throwable.ts"
export type { Webhooks } from "./host/Webhooks.ts"
export { charging, Result, type Returned } from "./host/Work.ts"
