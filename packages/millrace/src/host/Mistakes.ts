/** Mistakes that the compiler tells TypeScript callers, in sentences for callers in JavaScript. */
import { Layer } from "effect"
import { CALLED, NOTICE, OWNER } from "./ArgumentRules.ts"
import { assertGiven, isRecord, Mistake, type Rules, shown } from "./Given.ts"
import { CALL, JOB, OPTIONS } from "./OptionRules.ts"

const METHODS: ReadonlyArray<unknown> = ["GET", "POST", "PUT", "PATCH", "DELETE"]
const KEY = /^[A-Za-z][\w-]*(?:\.[\w-]+)+$/u

/** A segment of a path is a text or a parameter. */
const PATH = /^(?:\/(?::[A-Za-z_]\w*|[\w.~%!$&'()+,;=@-]+))+$/u

/** Throws a sentence that names the operation and what its definition lacks. `outcome`: the option that has the schema of the result. */
export const assertDefinition = (key: unknown, options: unknown, outcome: "success" | "result"): void => {
  const refuse = (what: string): never => {
    throw new Mistake(`The operation ${shown(key)} ${what}`)
  }
  if (typeof key !== "string" || !KEY.test(key)) refuse('needs a key of an area and a name, such as "greeting.write"')
  if (!isRecord(options)) return refuse("needs its options: summary, price, route, the schema of its result, and run")
  const { route, run, summary } = options
  if (typeof summary !== "string" || summary === "") refuse("needs a summary: one line for the documentation")
  if (typeof run !== "function") refuse(`needs run, the function that does its work; it is ${shown(run)}`)
  if (!isRecord(route)) return refuse('needs a route: { method: "GET", path: "/greeting/:name", params }')
  if (options[outcome] === undefined) refuse(`needs ${outcome}, the schema of its result`)
  assertGiven(`the operation ${shown(key)}`, options, outcome === "success" ? CALL : JOB)
  assertRoute(route, refuse)
  if (outcome === "result" && String(route["path"]).includes(":"))
    refuse("is a job, and its path has a parameter: give it by the body or the query")
}

const assertRoute = (route: Readonly<Record<string, unknown>>, refuse: (what: string) => never): void => {
  const { body, method, path } = route
  if (!METHODS.includes(method)) refuse(`has the method ${shown(method)}; give GET, POST, PUT, PATCH or DELETE`)
  if (typeof path !== "string" || !path.startsWith("/"))
    return refuse(`has the path ${shown(path)}; give one that begins with a slash, such as "/greeting/:name"`)
  if (!PATH.test(path)) refuse(`has the path ${shown(path)}; each part of it is a text or a parameter, as in "/greeting/:name"`)
  if (method === "GET" && body !== undefined) refuse("has a body, which GET requests have not: give query, or another method")
}

/** Throws for a field that two parts of a request have: the work gets one object. */
export const assertOnePlace = (key: string, parts: ReadonlyArray<{ readonly name: string; readonly fields: object }>): void => {
  const places = new Map<string, string>()
  for (const { fields, name } of parts)
    for (const field of Object.keys(fields)) {
      const other = places.get(field)
      if (other !== undefined)
        throw new Mistake(`The operation ${shown(key)} has the field ${field} in ${other} and in ${name}: give it one`)
      places.set(field, name)
    }
}

/** Throws for a secret field that there is not: a misspelt one would be echoed and logged. */
export const assertSecret = (key: string, secret: ReadonlyArray<string> = [], fields: ReadonlyArray<string>): void => {
  for (const name of secret)
    if (!fields.includes(name)) throw new Mistake(`The operation ${shown(key)} has the secret field ${name}, and no field of that name`)
}

/** Throws a sentence that says what the options of `createMillrace` lack. */
export const assertOptions = (options: unknown): void => {
  if (!isRecord(options)) throw new Mistake("createMillrace needs its options: at least store and operations")
  const { operations, standard, store } = options
  if (typeof store !== "string" && !Layer.isLayer(store))
    throw new Mistake('createMillrace needs a store, such as "sqlite:./data/millrace.db" or "memory:"')
  if (standard !== undefined && standard !== true && !Array.isArray(standard))
    throw new Mistake(`The option standard is ${shown(standard)}: give true, or names such as ["bin.lookup", "dns"]`)
  assertGiven("createMillrace", options, OPTIONS)
  if (operations === undefined && standard !== undefined) return
  if (!Array.isArray(operations))
    throw new Mistake("createMillrace needs operations: an array of what operation() and job() made, or standard: true")
  for (const operation of operations)
    if (!isRecord(operation) || !isRecord(operation["core"]))
      throw new Mistake(`createMillrace was given an operation that neither operation() nor job() made: ${shown(operation)}`)
}

/** Throws a sentence where a call does not say whose it is, or has a key that names no call. */
export const assertCall = (operation: unknown, options: unknown): void => {
  if (!isRecord(operation) || !isRecord(operation["core"])) throw new Mistake("run needs what operation() or job() made")
  const key = shown(operation["key"])
  if (!isRecord(options)) throw new Mistake(`A call of ${key} needs the account that pays: run(operation, input, { account })`)
  if (typeof options["account"] !== "string" || options["account"] === "")
    throw new Mistake(`A call of ${key} needs the account that pays, as a text: run(operation, input, { account })`)
  assertGiven(`the call of ${key}`, options, CALLED)
}

/** Throws unless the host serves the operation. Without that it would have no price. */
export const assertServed = (operation: { readonly key: string; readonly core: unknown }, served: ReadonlyArray<unknown>): void => {
  if (!served.includes(operation.core))
    throw new Mistake(`The operation ${shown(operation.key)} is not one of this host: give it to createMillrace by operations or standard`)
}

/** Throws on a Node.js that is too old, which would fail later, in words of its own. */
export const assertNode = (version: string): void => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  if (major < 22 || (major === 22 && minor < 19)) throw new Mistake(`Millrace needs Node.js 22.19 or newer; this is ${version}`)
}

/** Throws unless options are given, each as its rule says. */
export const assertArguments = (what: string, options: unknown, rules: Rules): void => {
  if (!isRecord(options)) throw new Mistake(`${what} needs an object with ${Object.keys(rules).join(", ")}; it is ${shown(options)}`)
  assertGiven(what, options, rules)
}

/** Throws unless a job is named by what `job` made, its id, and its owner. */
export const assertJob = (what: string, job: unknown, owner: unknown): void => {
  if (!isRecord(job) || !isRecord(job["companions"])) throw new Mistake(`${what} needs what job() made: ${what}(job, id, { account })`)
  if (!isRecord(owner) || owner["account"] === undefined)
    throw new Mistake(`${what} needs the account whose job it is: ${what}(job, id, { account })`)
  assertGiven(what, owner, OWNER)
}

/** Throws for a handler of what is never told. */
export const assertListening = (name: unknown, handler: unknown): void => {
  if (!NOTICE.holds(name)) throw new Mistake(`There is no notice ${shown(name)}: give ${NOTICE.give}`)
  if (typeof handler !== "function") throw new Mistake(`on needs a handler of ${shown(name)}: a function; it is ${shown(handler)}`)
}
