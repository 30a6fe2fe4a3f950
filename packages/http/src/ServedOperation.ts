/** An operation as it is served: what is computed once for all its calls, and how a request becomes the input and the caller of one. */

import type { ApiKey, Charge, Operation } from "@millrace/core"
import { Result } from "effect"
import type * as Access from "./Access.ts"
import * as ApiPaths from "./ApiPaths.ts"
import * as CallHeaders from "./CallHeaders.ts"
import { PREFIX, type Servable } from "./Endpoint.ts"
import type { Exchange } from "./Exchange.ts"
import * as Input from "./OperationInput.ts"
import { InvalidRequest } from "./Refusal.ts"
import type { Body } from "./RequestBody.ts"
import type { Head } from "./RequestReport.ts"

/** `scope`: undefined where callers need no key. */
export const make = (operation: Servable, scope: ApiKey.Scope | undefined) => ({
  operation,
  scope,
  path: `${PREFIX}${operation.route.path}` as const,
  isPathSecret: Object.keys(operation.route.params).some((name) => operation.secret.includes(name)),
  decode: Input.make(operation),
  paths: ApiPaths.of(operation)
})
export type ServedOperation = ReturnType<typeof make>

/** A request, and what the router and the report found out about it. */
export interface Sent {
  readonly request: Head
  readonly exchange: Exchange
  readonly params: Input.Sent["params"]
  readonly query: Input.Sent["query"]
}

/** The input of a call and the headers about it, with all that is wrong with either in one failure. */
export const inputOf = ({ decode }: ServedOperation, { params, query, request }: Omit<Sent, "exchange">, body: Body | undefined) => {
  const input = decode({ params, query, body: body?.json })
  const headers = CallHeaders.parse(request.headers)
  return Result.isFailure(input) || Result.isFailure(headers)
    ? Result.fail(new InvalidRequest({ issues: [...issuesOf(input), ...issuesOf(headers)] }))
    : Result.succeed({ input: input.success, headers: headers.success })
}

const issuesOf = <A>(result: Result.Result<A, ReadonlyArray<Input.Issue>>) => (Result.isFailure(result) ? result.failure : [])

/** The caller of the billed call. `text`: the body. */
export const callerOf = (
  caller: Access.Caller,
  { idempotencyKey, maxCost, wait }: CallHeaders.CallHeaders,
  { exchange, request }: Sent,
  text: string
): Charge.Caller => ({
  accountId: caller.accountId,
  requestId: exchange.id,
  credential: credentialOf(caller),
  ...(wait === undefined ? {} : { wait }),
  ...(idempotencyKey === undefined ? {} : { idempotency: { key: idempotencyKey, request: `${request.method} ${request.url}\n${text}` } }),
  ...(maxCost === undefined ? {} : { maxCost })
})

const credentialOf = (caller: Access.Caller): Operation.Credential => {
  const { expiresAt, scopes } = caller
  return { scopes, expiresAt, ...("keyId" in caller ? { keyId: caller.keyId } : {}) }
}
