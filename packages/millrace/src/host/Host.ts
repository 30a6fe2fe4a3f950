/**
 * Millrace for a host that uses promises: one function makes it, of the same layers that a host with Effect provides itself. Amounts are in
 * credits, times are `Date`s.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { AuthThrottle, type BlobStore, Charge, type Operation as Core, Credits, Millrace, newRequestId } from "@millrace/core"
import { Api, Http, Readiness, toNodeHandler, WebHandler } from "@millrace/http"
import { ConfigProvider, Effect, Exit, Layer, ManagedRuntime, Option, Scope } from "effect"
import { resolve } from "../administration/Accounts.ts"
import * as Blobs from "../Blobs.ts"
import * as Logging from "../Logging.ts"
import * as SettingNames from "../SettingNames.ts"
import * as StateUrl from "../StateUrl.ts"
import * as StoreUrl from "../StoreUrl.ts"
import { type Administration, administrationOf } from "./Administration.ts"
import type { Accepted, Job } from "./Job.ts"
import { type JobActs, jobsOf } from "./Jobs.ts"
import { assertCall, assertOptions } from "./Mistakes.ts"
import { type Listening, listeningOf } from "./Notices.ts"
import type { Operation } from "./Operation.ts"
import { type Reports, reportsOf } from "./Reports.ts"
import { amountOf, runnerOf } from "./Run.ts"

// biome-ignore lint/suspicious/noExplicitAny: operations of any input
type AnyOperation = Operation<any, any> | Job<any, any>
type Data<Op> = Op extends Operation<infer _, infer A> ? A : Op extends Job<infer _, infer _> ? Accepted : never
type InputOf<Op> = Op extends Operation<infer I, infer _> | Job<infer I, infer _> ? I : never

export interface Options {
  /** `sqlite:./data/millrace.db`, `postgres://…`, `kurrentdb://…`, or `memory:`. A store in files is made if it is missing. */
  readonly store: string
  /** 32 bytes as 64 hexadecimal digits or Base64. Without one, a store in files has it in `master.key` beside it. */
  readonly masterKey?: string
  readonly operations: ReadonlyArray<AnyOperation>
  /** For a log on KurrentDB: where keys, replies and leases are kept, `postgres://…`, or `sqlite:PATH` for one host. */
  readonly state?: string
  /** Where files of jobs are kept: a folder, or `s3:https://HOST/BUCKET`. By default the folder `blobs` beside the store. */
  readonly blobs?: string
  /** What stands at the top of the API's document: title, version, description, contact, licence, servers. */
  readonly api?: Info
  /** Calls of an account in a window of seconds: 60 in 60 by default. */
  readonly rateLimit?: { readonly limit: number; readonly window: number }
  /** Jobs that this process runs at once: 16 by default; with 0 it only accepts them. */
  readonly jobs?: number
  /** The file where erasures are written down: by default `erasures.jsonl` beside a store in files. */
  readonly erasures?: string
  /** Where log lines go: warnings and errors to the console by default. */
  readonly log?: Log
}

/** A logger, such as `console`: a line's text and its fields, such as `requestId`. Lines of a level that it has not are left out. */
export type Log = {
  readonly [L in "debug" | "info" | "warn" | "error"]?: (text: string, fields: Readonly<Record<string, unknown>>) => void
}

/** Who calls, for a call in code. */
export interface CallOptions {
  /** The account's id, `acc_...` or the host's own. */
  readonly account: string
  /** A call runs once under its key: sent again, it is answered with the first reply and costs nothing. */
  readonly idempotencyKey?: string
  /** The most that the call may cost, in credits. */
  readonly maxCredits?: number
  /** By default a new one. */
  readonly requestId?: string
  readonly signal?: AbortSignal
}

/** The reply of a call. Amounts in credits. */
export interface Reply<A> {
  readonly data: A
  /** What this call cost: 0 for a replay, and for a job until it has succeeded. */
  readonly charged: number
  /** What the account can spend now; undefined for a free call. */
  readonly balance: number | undefined
  readonly requestId: string
  readonly replayed: boolean
}

/** Millrace at a host. */
export interface Host extends Administration, Reports, Listening {
  /** Runs an operation and charges its account. A call that fails costs nothing. */
  readonly run: <Op extends AnyOperation>(operation: Op, input: InputOf<Op>, options: CallOptions) => Promise<Reply<Data<Op>>>
  /** Reads, awaits and cancels jobs, and reads their files. */
  readonly jobs: JobActs
  /** A listener for `node:http` and a middleware for Express: `/api/v1`, `/docs`, `/health` and `/ready`. Other paths go to `next`. */
  readonly handler: (request: IncomingMessage, response: ServerResponse, next?: () => void) => void
  /** The same for servers of web requests. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Answers new calls with 503, lets running ones end, and closes the stores. */
  readonly close: () => Promise<void>
}

/** Opens the store, and starts what runs in the background. Rejects with a sentence if it cannot. */
export const createMillrace = async (options: Options): Promise<Host> => {
  assertOptions(options)
  const api = apiOf(options.operations, options.api)
  const runtime = ManagedRuntime.make(layerOf(options, api))
  const scope = Scope.makeUnsafe()
  const run = runnerOf(runtime)
  const shutDown = () => Effect.runPromise(Scope.close(scope, Exit.void)).then(() => runtime.dispose())
  try {
    const { handle } = await run(Scope.provide(WebHandler.make(Http.layer(api)), scope))
    const listener = toNodeHandler(handle)
    let closed: Promise<void> | undefined
    return {
      run: async (operation, input, call) => {
        assertCall(operation, call)
        return (await run(callOf(operation, input, call), call.signal)) as never
      },
      ...administrationOf(run, options),
      ...reportsOf(run, options.store),
      jobs: jobsOf(run, freely),
      ...listeningOf(run, scope),
      handler: (request, response, next) => (next === undefined || isOurs(request.url ?? "/") ? listener(request, response) : next()),
      fetch: handle,
      close: () => (closed ??= shutDown())
    }
  } catch (error) {
    await shutDown()
    throw error
  }
}

const OURS = /^\/(?:api\/v1|docs|health|ready)(?:[/?#]|$)/u
const isOurs = (url: string): boolean => OURS.test(url)

export type Info = NonNullable<Parameters<typeof Api.make>[1]>

const apiOf = (operations: ReadonlyArray<AnyOperation>, info?: Info) => {
  const all = operations.flatMap((operation) =>
    operation._tag === "Job" ? [operation.core, ...Object.values(operation.companions)] : [operation.core]
  ) as Array<never>
  const areas = Map.groupBy(all as Array<Core.Any>, ({ key }) => key.split(".", 1)[0] ?? key)
  const groups = Object.fromEntries([...areas].map(([area, members]) => [area, Api.group(members as never)]))
  return Api.make(groups, info)
}

const layerOf = ({ blobs, jobs, log, masterKey, rateLimit, state, store }: Options, api: ReturnType<typeof apiOf>) => {
  const runner = jobs === 0 ? { runner: false } : jobs === undefined ? {} : { concurrency: jobs }
  const domain = Millrace.layer({
    operations: api.operations as ReadonlyArray<Core.Any<never, BlobStore.BlobStore>>,
    groups: api.groups,
    ...(rateLimit === undefined ? {} : { rateLimit }),
    jobs: runner
  }).pipe(
    Layer.provideMerge(Blobs.layer(store, Option.fromUndefinedOr(blobs))),
    Layer.provideMerge(StoreUrl.layer({ url: store, mode: "create" })),
    Layer.provide(Layer.succeed(StateUrl.State, Option.fromUndefinedOr(state))),
    Layer.provideMerge(Layer.succeed(SettingNames.Current, SettingNames.OPTIONS)),
    Layer.provideMerge(
      ConfigProvider.layer(masterKey === undefined ? ConfigProvider.fromEnv() : settings({ MILLRACE_MASTER_KEY: masterKey }))
    )
  )
  return Layer.mergeAll(Readiness.Readiness.layer(), AuthThrottle.layer()).pipe(
    Layer.provideMerge(domain),
    Layer.provideMerge(logLayer(log))
  )
}

const TO_CONSOLE: Log = { warn: (...line) => console.warn(...line), error: (...line) => console.error(...line) }

const logLayer = (log: Log = TO_CONSOLE) =>
  Logging.forwarding(log.debug === undefined ? "info" : "debug", (level, text, { details = [], ...fields }) => {
    const write = level === "fatal" ? log.error : level === "trace" ? log.debug : log[level]
    write?.call(log, text, Object.assign(fields, ...(details as ReadonlyArray<object>)))
  })

/** Settings that go before those of the environment. */
const settings = (given: Readonly<Record<string, string>>) =>
  ConfigProvider.orElse(ConfigProvider.fromUnknown(given), ConfigProvider.fromEnv())

const callOf = (operation: AnyOperation, input: unknown, { account, idempotencyKey, maxCredits, requestId }: CallOptions) =>
  Effect.gen(function* () {
    const charges = yield* Charge.Charge
    const sent = isRecord(input) ? input : {}
    const reply = yield* charges.run(operation.core as Core.Any<never, never>, sent, {
      accountId: yield* resolve(account),
      requestId: requestId ?? (yield* newRequestId),
      ...(idempotencyKey === undefined
        ? {}
        : { idempotency: { key: idempotencyKey, request: `${operation.key}\n${JSON.stringify(sent)}` } }),
      ...(maxCredits === undefined ? {} : { maxCost: amountOf(maxCredits, "maxCredits") })
    })
    return {
      data: JSON.parse(reply.data) as unknown,
      charged: reply.billed === undefined || reply.replayed ? 0 : Credits.toDecimal(reply.billed.charged),
      balance: reply.billed && Credits.toDecimal(reply.billed.balance),
      requestId: reply.requestId,
      replayed: reply.replayed
    }
  })

/** Runs an operation that is free. */
const freely = Effect.fnUntraced(function* (operation: Core.Any, input: Readonly<Record<string, unknown>>, account: string) {
  const charges = yield* Charge.Charge
  const { data, file } = yield* charges.run(operation as Core.Any<never, never>, input, {
    accountId: yield* resolve(account),
    requestId: yield* newRequestId
  })
  return { data: JSON.parse(data) as unknown, ...(file === undefined ? {} : { file }) }
})

const isRecord = (input: unknown): input is Record<string, unknown> => typeof input === "object" && input !== null && !Array.isArray(input)
