export { InvalidConnectionString } from "./ConnectionString.ts"
export * as KurrentDb from "./KurrentDb.ts"
export * as KurrentDbEventStore from "./KurrentDbEventStore.ts"
