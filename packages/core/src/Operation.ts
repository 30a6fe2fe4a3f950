/** Operations as a host defines them: calls, jobs and files, and the operations that read, cancel and download jobs. */
export * from "./jobs/JobOperations.ts"
export * from "./work/Operation.ts"
