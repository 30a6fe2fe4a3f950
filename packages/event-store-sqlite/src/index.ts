export * as SqliteCheck from "./SqliteCheck.ts"
export * as SqliteCopy from "./SqliteCopy.ts"
export * as SqliteEventStore from "./SqliteEventStore.ts"
export * as SqliteStateStore from "./SqliteStateStore.ts"
