/**
 * Runs the site's player code: a context of its own without any object of this thread, without `eval` and WebAssembly, and with a time limit.
 * `node:vm` alone is no border, so the thread around it has its own bounds.
 */
import { createContext, Script } from "node:vm"

/** Milliseconds. */
const TIME_LIMIT = 1_000

/** Characters: signatures have some hundred. */
const RESULT_LIMIT = 10_000

/**
 * Runs a function's body and returns what it returns, as JSON. Only text leaves the context, so that no object of it is ever touched here.
 * Throws if the code fails, takes too long, or returns nothing; the message never quotes it.
 */
export const run = (body: string): unknown => {
  const context = createContext(Object.create(null), { codeGeneration: { strings: false, wasm: false }, microtaskMode: "afterEvaluate" })
  let result: unknown
  try {
    result = new Script(`JSON.stringify((function () {${body}\n})())`).runInContext(context, { timeout: TIME_LIMIT })
  } catch {
    // What was thrown may be an object of the context, with getters of its own
    throw new Error("The player's code failed")
  }
  if (typeof result !== "string" || result.length > RESULT_LIMIT) throw new Error("The player's code returned nothing of use")
  return JSON.parse(result)
}
