/**
 * Millrace for a host that uses promises: one function makes it, of the same layers that a host with Effect provides itself. Amounts are in
 * credits, times are `Date`s.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Console from "@millrace/console"
import { Charge, type Operation as Core, Credits, newRequestId } from "@millrace/core"
import { Http, PaymentHooks, toNodeHandler, WebHandler } from "@millrace/http"
import { Array, Duration, Effect, Exit, Layer, ManagedRuntime, Redacted, Scope } from "effect"
import type { HttpRouter } from "effect/http"
import { resolve } from "../administration/Accounts.ts"
import * as OperatorView from "../operator/OperatorView.ts"
import * as PaymentSettings from "../PaymentSettings.ts"
import * as SmsSettings from "../SmsSettings.ts"
import { type Administration, administrationOf } from "./Administration.ts"
import { apiOf, layerOf, moneyOf, type Services, urlOf } from "./HostLayer.ts"
import { type Addresses, addresses, smsSettings } from "./Incoming.ts"
import type { Accepted, Job } from "./Job.ts"
import { type JobActs, jobsOf } from "./Jobs.ts"
import { assertCall, assertNode, assertOptions, assertServed } from "./Mistakes.ts"
import { type Listening, listeningOf } from "./Notices.ts"
import type { Operation } from "./Operation.ts"
import type { AnyOperation, AnyOptions, Options } from "./Options.ts"
import * as PaymentOptions from "./PaymentOptions.ts"
import { type Payments, paymentsOf } from "./Payments.ts"
import { type Proxies, proxiesOf } from "./Proxies.ts"
import { type Reports, reportsOf } from "./Reports.ts"
import { amountOf, runnerOf } from "./Run.ts"
import * as SignInOptions from "./SignInOptions.ts"
import { type Webhooks, webhooksOf } from "./Webhooks.ts"
import { restored } from "./Work.ts"

// biome-ignore-start lint/suspicious/noExplicitAny: operations of any input and any services
type Data<Op> = Op extends Operation<any, infer A, any> ? A : Op extends Job<any, any, any> ? Accepted : never
type InputOf<Op> = Op extends Operation<infer I, any, any> | Job<infer I, any, any> ? I : never
// biome-ignore-end lint/suspicious/noExplicitAny: as above

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
  /** The result, read from its JSON by its schema: a replay has the same. */
  readonly data: A
  /** What this call cost: 0 for a replay, and for a job until it has succeeded. */
  readonly charged: number
  /** What the account can spend now; undefined for a free call. */
  readonly balance: number | undefined
  readonly requestId: string
  readonly replayed: boolean
}

/** Millrace at a host. */
export interface Host extends Administration, Reports, Listening, Payments, Webhooks, Proxies {
  /** Runs an operation and charges its account. A call that fails costs nothing. */
  readonly run: <Op extends AnyOperation>(operation: Op, input: InputOf<Op>, options: CallOptions) => Promise<Reply<Data<Op>>>
  /** Reads, awaits and cancels jobs, and reads their files. */
  readonly jobs: JobActs
  /** A listener for `node:http` and a middleware for Express: `/api/v1`, `/docs`, `/health`, `/ready`, with `sms` `/hooks/sms`, with `payments` `/hooks/payments`, with `signIn` `/sign-in`, and with `webTool` its path. Other paths go to `next`. */
  readonly handler: (request: IncomingMessage, response: ServerResponse, next?: () => void) => void
  /** The same for servers of web requests. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Where this host receives mail and serves proxies. */
  readonly addresses: Addresses
  /** Answers new calls with 503, lets running ones end, then stops receiving mail and messages, and closes the stores. */
  readonly close: () => Promise<void>
}

/** Opens the store, and starts what runs in the background. Rejects with a sentence if it cannot. */
export const createMillrace = async <const Operations extends ReadonlyArray<AnyOperation> = []>(
  given: Options<Operations>
): Promise<Host> => {
  assertNode(process.versions.node)
  assertOptions(given)
  const options = given as AnyOptions
  const api = apiOf(options)
  const store = urlOf(options.store)
  const runtime = ManagedRuntime.make(layerOf(options, api))
  const scope = Scope.makeUnsafe()
  let isClosed = false
  const run = runnerOf(runtime, moneyOf(options.money), () => isClosed)
  const shutDown = async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    isClosed = true
    await runtime.dispose()
  }
  try {
    const { corsOrigins, erasures, grace = 30, operatorKey, signIn, webTool } = options
    const origins = [...(corsOrigins ?? [])]
    const sms = smsSettings(options.sms)
    const hooks = [...SmsSettings.hooked(sms), ...PaymentSettings.hooked(PaymentOptions.settingsOf(options.payments))]
    const cors = Array.isArrayNonEmpty(origins) ? { cors: { origins } } : {}
    const routes = Layer.mergeAll(
      Http.layer(api, { ...cors, hooks, operator: operatorKey !== undefined, sessions: signIn !== undefined }),
      operatorKey === undefined ? Layer.empty : OperatorView.layer(Redacted.make(operatorKey)),
      SmsSettings.hooks(sms),
      options.payments === undefined ? Layer.empty : PaymentHooks.layer,
      signIn === undefined ? Layer.empty : SignInOptions.routesOf(signIn, options.api?.title, webTool),
      webTool === undefined ? Layer.empty : Console.layer({ path: webTool })
    ) as Layer.Layer<never, never, Services | HttpRouter.HttpRouter>
    const { handle } = await run(Scope.provide(WebHandler.make(routes, { drainWithin: Duration.seconds(grace) }), scope))
    const listener = toNodeHandler(handle)
    const ours = oursOf(options)
    let closed: Promise<void> | undefined
    return {
      run: async (operation, input, call) => {
        assertCall(operation, call)
        assertServed(operation, api.operations)
        return (await run(callOf(operation, input, call), call.signal)) as never
      },
      ...administrationOf(run, { store, ...(erasures === undefined ? {} : { erasures }) }),
      ...reportsOf(run, {
        store,
        blobs: typeof options.blobs === "string" ? options.blobs : undefined,
        operations: api.operations.map(({ key }) => key)
      }),
      jobs: jobsOf(run, freely),
      ...listeningOf(run, scope),
      ...webhooksOf(run),
      ...proxiesOf(run),
      ...paymentsOf(run),
      addresses: await run(addresses),
      handler: (request, response, next) => (next === undefined || ours.test(request.url ?? "/") ? listener(request, response) : next()),
      fetch: handle,
      close: () => (closed ??= shutDown())
    }
  } catch (error) {
    await shutDown()
    throw error
  }
}

/** The paths of a host, and those of what it has: hooks of text messages and payments, the page of mailed links, the web tool. */
const oursOf = ({ payments, signIn, sms, webTool }: Pick<AnyOptions, "payments" | "signIn" | "sms" | "webTool">): RegExp => {
  const tool = webTool === "/" ? ["", "assets"] : webTool === undefined ? [] : [webTool.slice(1)]
  const ours = [
    ...["api/v1", "docs", "health", "ready", ...tool],
    ...(sms === undefined ? [] : ["hooks/sms"]),
    ...(payments === undefined ? [] : ["hooks/payments"]),
    ...(signIn === undefined ? [] : ["sign-in", "sign-in\\.js", "sign-in\\.css", "price-alerts/end"])
  ]
  return new RegExp(`^/(?:${ours.join("|")})(?:[/?#]|$)`, "u")
}

const callOf = (operation: AnyOperation, input: unknown, { account, idempotencyKey, maxCredits, requestId }: CallOptions) =>
  Effect.gen(function* () {
    const charges = yield* Charge.Charge
    const given = isRecord(input) ? input : {}
    const sent = operation.decode === undefined ? given : yield* operation.decode(given)
    const reply = yield* charges.run(operation.core as Core.Any<never, never>, sent, {
      accountId: yield* resolve(account),
      requestId: requestId ?? (yield* newRequestId),
      ...(idempotencyKey === undefined
        ? {}
        : { idempotency: { key: idempotencyKey, request: `${operation.key}\n${JSON.stringify(given)}` } }),
      ...(maxCredits === undefined ? {} : { maxCost: amountOf(maxCredits, "maxCredits") })
    })
    const decode = operation._tag === "Operation" ? operation.decodeData : undefined
    return {
      data: yield* restored(operation.key, "result", decode, JSON.parse(reply.data)),
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
