/** Millrace as promises, for hosts without Effect. */
export * from "./host/Administration.ts"
export * from "./host/Failures.ts"
export * from "./host/Host.ts"
export * from "./host/Job.ts"
export * from "./host/Jobs.ts"
export * from "./host/Operation.ts"
export type { AccountEvent, Reports } from "./host/Reports.ts"
export { InvalidInput, NotFound, UpstreamUnavailable } from "./host/Throwable.ts"
