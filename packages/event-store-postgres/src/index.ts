export * as AppendOnlyRole from "./AppendOnlyRole.ts"
export * as PostgresEventStore from "./PostgresEventStore.ts"
export * as PostgresStateStore from "./PostgresStateStore.ts"
export * as PostgresStores from "./PostgresStores.ts"
