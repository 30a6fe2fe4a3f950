/** Mistakes that the compiler tells TypeScript callers, in sentences for callers in JavaScript. */
import { Layer } from "effect"

const METHODS: ReadonlyArray<unknown> = ["GET", "POST", "PUT", "PATCH", "DELETE"]
const KEY = /^[A-Za-z][\w-]*(?:\.[\w-]+)+$/u

interface Record {
  readonly [name: string]: unknown
}

const isRecord = (value: unknown): value is Record => typeof value === "object" && value !== null

const shown = (value: unknown): string =>
  typeof value === "string" ? JSON.stringify(value) : typeof value === "function" ? "a function" : String(value)

/** Throws a sentence that names the operation and what its definition lacks. */
export const assertDefinition = (key: unknown, options: unknown): void => {
  const refuse = (what: string): never => {
    throw new TypeError(`The operation ${shown(key)} ${what}`)
  }
  if (typeof key !== "string" || !KEY.test(key)) refuse('needs a key of an area and a name, such as "greeting.write"')
  if (!isRecord(options)) return refuse("needs its options: summary, price, route, the schema of its result, and run")
  const { route, run, summary } = options
  if (typeof summary !== "string" || summary === "") refuse("needs a summary: one line for the documentation")
  if (typeof run !== "function") refuse(`needs run, the function that does its work; it is ${shown(run)}`)
  if (!isRecord(route)) return refuse('needs a route: { method: "GET", path: "/greeting/:name", params }')
  if (!METHODS.includes(route["method"])) refuse(`has the method ${shown(route["method"])}; give GET, POST, PUT, PATCH or DELETE`)
  if (typeof route["path"] !== "string" || !route["path"].startsWith("/"))
    refuse(`has the path ${shown(route["path"])}; give one that begins with a slash, such as "/greeting/:name"`)
}

/** Throws a sentence that says what the options of `createMillrace` lack. */
export const assertOptions = (options: unknown): void => {
  if (!isRecord(options)) throw new TypeError("createMillrace needs its options: at least store and operations")
  const { operations, standard, store } = options
  if (typeof store !== "string" && !Layer.isLayer(store))
    throw new TypeError('createMillrace needs a store, such as "sqlite:./data/millrace.db" or "memory:"')
  if (standard !== undefined && standard !== true && !Array.isArray(standard))
    throw new TypeError(`The option standard is ${shown(standard)}: give true, or names such as ["bin.lookup", "dns"]`)
  if (operations === undefined && standard !== undefined) return
  if (!Array.isArray(operations))
    throw new TypeError("createMillrace needs operations: an array of what operation() and job() made, or standard: true")
  for (const operation of operations)
    if (!isRecord(operation) || !isRecord(operation["core"]))
      throw new TypeError(`createMillrace was given an operation that neither operation() nor job() made: ${shown(operation)}`)
}

/** Throws a sentence where a call does not say whose it is. */
export const assertCall = (operation: unknown, options: unknown): void => {
  if (!isRecord(operation) || !isRecord(operation["core"])) throw new TypeError("run needs what operation() or job() made")
  if (!isRecord(options) || typeof options["account"] !== "string" || options["account"] === "")
    throw new TypeError(`A call of ${shown(operation["key"])} needs the account that pays: run(operation, input, { account })`)
}
