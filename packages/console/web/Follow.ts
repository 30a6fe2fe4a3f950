/** Follows a job that a call made, until it has ended, and finds its file. */
import type { Contract, Operation } from "./Contract.ts"
import { ask } from "./Requests.ts"

type Data = Readonly<Record<string, unknown>>

const isData = (value: unknown): value is Data => typeof value === "object" && value !== null && !Array.isArray(value)

/** The path of a linked operation, filled from the data of an answer; undefined where the data does not have what it takes. */
const pathOf = (contract: Contract, { links }: Operation, data: Data, wanted: (linked: Operation) => boolean): string | undefined => {
  for (const { operation, parameters } of links) {
    const linked = contract.byKey(operation)
    if (linked === undefined || !wanted(linked)) continue
    const values = Object.entries(parameters).map(([name, field]) => [name, data[field]] as const)
    if (values.every(([, value]) => typeof value === "string"))
      return values.reduce((path, [name, value]) => path.replace(`{${name}}`, encodeURIComponent(String(value))), linked.path)
  }
  return undefined
}

const isMedia = ({ answers }: Operation): boolean => answers.some((type) => /^(?:audio|image)\//u.test(type))

/** Whether data is that of a job which has not ended. */
export const isRunning = (data: unknown): boolean => isData(data) && (data["status"] === "processing" || data["status"] === "queued")

/** The path at which the job of an answer is read; undefined if the answer is not that of a job. */
export const jobPath = (contract: Contract, operation: Operation, data: unknown): string | undefined =>
  isData(data)
    ? pathOf(contract, operation, data, ({ answers, method }) => method === "GET" && answers.includes("application/json"))
    : undefined

/** The path of the file that an answer leads to; undefined for none. */
export const filePath = (contract: Contract, operation: Operation, data: unknown): string | undefined => {
  if (!isData(data)) return undefined
  if (typeof data["download_url"] === "string") return data["download_url"]
  return data["status"] === "succeeded" || data["status"] === "completed" ? pathOf(contract, operation, data, isMedia) : undefined
}

/** Seconds that one request waits for the end of a job. */
const WAIT = 20

/** Reads a job until it has ended. */
export const ended = async (path: string, signal: AbortSignal): Promise<unknown> => {
  for (;;) {
    const data = await ask<unknown>({ method: "GET", path, headers: { Prefer: `wait=${WAIT}` }, signal })
    if (!isRunning(data)) return data
  }
}
