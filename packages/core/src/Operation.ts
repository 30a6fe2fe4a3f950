/** The module with which a host defines operations: calls, jobs and files, and operations that read, cancel and download jobs. */
export * from "./jobs/JobOperations.ts"
export * from "./work/Operation.ts"
