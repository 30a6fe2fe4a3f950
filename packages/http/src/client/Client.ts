/** A client with promises, for browsers, workers and Node. It needs `fetch`, and imports no library and no code of the server. */
import type { Api, Groups, OperationsOf } from "../Api.ts"
import * as Exchange from "./Exchange.ts"
import { type Failure, isFailure } from "./Failure.ts"
import { type Arguments, type DataOf, type Grouped, grouped, type InputOf } from "./Methods.ts"
import { type Policy, policyOf, type RetryOptions, timeoutOfNext, waitBeforeNext } from "./Retry.ts"
import { type Described, parse, type Route, type Routes, routesOf } from "./Routes.ts"
import { STANDARD_ROUTES, type StandardOperation } from "./StandardRoutes.ts"

export interface CallOptions extends Exchange.CallOptions {
  /** Cancels the call, which is refunded unless its work is done. */
  readonly signal?: AbortSignal
}

/** Resolves with the reply; rejects with a `Failure`, or with the reason of the signal. */
export type Method<Op> = (...args: Arguments<InputOf<Op>, CallOptions>) => Promise<Exchange.Reply<DataOf<Op>>>

export type Client<Op extends Described> = Grouped<Op, { readonly [Key in Op["key"]]: Method<Extract<Op, { readonly key: Key }>> }>

/** The functions of the platform that a client uses. */
export interface Surroundings {
  readonly fetch: (request: Request) => Promise<Response>
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  /** Resolves after so many milliseconds, or as soon as the signal aborts. */
  readonly sleep: (millis: number, signal: AbortSignal) => Promise<void>
  readonly newIdempotencyKey: () => string
}

export interface Options {
  /** Where Millrace is mounted, such as `https://api.example.com`; empty in a page of the same origin. */
  readonly baseUrl: string
  readonly apiKey?: string
  readonly retry?: RetryOptions
  readonly surroundings?: Partial<Surroundings>
}

const SURROUNDINGS: Surroundings = {
  fetch: (request) => fetch(request),
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (millis, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener("abort", done)
        resolve()
      }
      const timer = setTimeout(done, millis)
      signal.addEventListener("abort", done)
    }),
  // Unlike `randomUUID`, this exists in pages without TLS
  newIdempotencyKey: () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")
}

/**
 * A client of the standard operations, or of the host's own `api`. A web page that has only the type of an API passes its routes:
 * `createClient<typeof api>({ routes, ... })`.
 */
export function createClient<G extends Groups>(options: Options & { readonly api: Api<G> }): Client<OperationsOf<G>>
export function createClient<A extends { readonly operations: ReadonlyArray<Described> }>(
  options: Options & { readonly routes: Routes<A["operations"][number]> }
): Client<A["operations"][number]>
export function createClient(options: Options): Client<StandardOperation>
export function createClient({
  baseUrl,
  apiKey,
  retry,
  surroundings,
  api,
  routes = api === undefined ? STANDARD_ROUTES : routesOf(api)
}: Options & {
  readonly api?: { readonly operations: ReadonlyArray<Described> }
  readonly routes?: Readonly<Record<string, string>>
}): object {
  const root = baseUrl.replace(/\/+$/u, "")
  const policy = policyOf(retry)
  const around: Surroundings = { ...SURROUNDINGS, ...surroundings }

  const methodOf = (route: Route) => {
    return async (input: Exchange.Fields = {}, { signal, ...options }: CallOptions = {}) => {
      const idempotencyKey = options.idempotencyKey ?? around.newIdempotencyKey()
      const outgoing = Exchange.request(route, input, { ...options, idempotencyKey }, apiKey)
      return send(root, outgoing, { idempotencyKey, signal: signal ?? new AbortController().signal, policy, around })
    }
  }
  return grouped(Object.entries(routes).map(([key, line]) => [key, methodOf(parse(line))]))
}

interface Sending {
  readonly idempotencyKey: string
  readonly signal: AbortSignal
  readonly policy: Policy
  readonly around: Surroundings
}

/** Sends a request until it is answered, or its retry policy gives up. */
const send = async (root: string, outgoing: Exchange.Outgoing, sending: Sending): Promise<Exchange.Reply<unknown>> => {
  const { signal, policy, around } = sending
  const startedAt = around.now()
  for (let attempts = 1; ; attempts++) {
    const outcome = await attempt(root, outgoing, sending, timeoutOfNext(policy, around.now() - startedAt))
    if (!isFailure(outcome)) return outcome
    const wait = waitBeforeNext(policy, outcome, { attempts, spent: around.now() - startedAt }, around.random())
    if (wait === undefined) throw outcome
    await around.sleep(wait, signal)
  }
}

const attempt = async (
  root: string,
  { method, target, headers, body, isFile }: Exchange.Outgoing,
  { idempotencyKey, signal, around }: Sending,
  timeout: number
): Promise<Exchange.Reply<unknown> | Failure> => {
  const [over, late] = [new AbortController(), new AbortController()]
  // Outside of the try, so that a malformed address or header does not count as a network failure
  const request = new Request(`${root}${target}`, {
    method,
    headers,
    credentials: "omit",
    // The key is for this server only
    redirect: "manual",
    signal: AbortSignal.any([signal, late.signal]),
    ...(body === undefined ? {} : { body })
  })
  around.sleep(timeout, over.signal).then(() => late.abort())
  try {
    const response = await around.fetch(request)
    const { status, headers } = response
    const bytes = new Uint8Array(await response.arrayBuffer())
    const header = (name: string) => headers.get(name) ?? undefined
    return Exchange.read({ status, header, bytes }, { isFile, idempotencyKey }, around.now())
  } catch (cause) {
    signal.throwIfAborted()
    return Exchange.noAnswer(late.signal.aborted, idempotencyKey, cause)
  } finally {
    over.abort()
  }
}
