export * as Bin from "./operations/Bin.ts"
export * as Grammar from "./operations/Grammar.ts"
export * as Operation from "./operations/Operation.ts"
export { InvalidInput, NotFound, type OperationError, UpstreamNotConfigured, UpstreamUnavailable } from "./operations/OperationError.ts"
