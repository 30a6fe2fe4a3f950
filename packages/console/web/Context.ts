/** What every page may use: the contract of the host, and whether the account is followed. */
import { createContext } from "preact"
import { useContext } from "preact/hooks"
import type { Contract } from "./Contract.ts"
import type { LiveState } from "./Live.ts"

export interface Tool {
  readonly contract: Contract
  readonly live: LiveState
}

export const ToolContext = createContext<Tool | undefined>(undefined)

export const useTool = (): Tool => {
  const tool = useContext(ToolContext)
  if (tool === undefined) throw new Error("A page is shown by the shell")
  return tool
}

/** Whether the host offers a way to read or do something. */
export const useOffered = (method: string, path: string): boolean => useTool().contract.find(method, path) !== undefined
