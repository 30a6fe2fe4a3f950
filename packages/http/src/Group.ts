/** Operations in groups: what a contract is made of. */
import type { ApiKey } from "@millrace/core"
import type { Array } from "effect"
import type * as Endpoint from "./Endpoint.ts"

/** Operations that belong together: one tag in OpenAPI, one property of a client, one scope of API keys. */
export interface Group<Operations extends Array.NonEmptyReadonlyArray<Endpoint.Servable>> {
  readonly operations: Operations
  /** What an API key must be good for; undefined: no key is asked for. */
  readonly scope: ApiKey.Scope | undefined
  /** What they are about, for the documentation. */
  readonly description: string | undefined
}

export type Groups = Readonly<Record<string, Group<Array.NonEmptyReadonlyArray<Endpoint.Servable>>>>

/** All operations of some groups, whichever. */
export type OperationsOf<G extends Groups> = G[keyof G]["operations"][number]

/** A group whose operations any key may call that is good for `scope`: billed `operations` by default. */
export const group = <const Operations extends Array.NonEmptyReadonlyArray<Endpoint.Servable>>(
  operations: Operations,
  { scope = "operations", description }: { readonly scope?: ApiKey.Scope; readonly description?: string } = {}
): Group<Operations> => ({ operations, scope, description })

/** A group for callers without a key, who are limited by their address. Its operations are priced at nothing. */
export const publicGroup = <const Operations extends Array.NonEmptyReadonlyArray<Endpoint.Servable>>(
  operations: Operations,
  { description }: { readonly description?: string } = {}
): Group<Operations> => ({ operations, scope: undefined, description })
