export * as SqliteEventStore from "./SqliteEventStore.ts"
export * as SqliteStateStore from "./SqliteStateStore.ts"
