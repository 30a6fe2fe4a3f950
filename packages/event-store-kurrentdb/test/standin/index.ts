export { type AppendCall, type AppendFault, type CallFault, Faults, type Refusal } from "./Faults.ts"
export * as KurrentDbStandIn from "./KurrentDbStandIn.ts"
export { type Expected, Log, type Proposed, type Recorded } from "./Log.ts"
