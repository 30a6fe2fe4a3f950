/** Groups of operations, from which a contract is made. */
import type { ApiKey } from "@millrace/core"
import type { Array } from "effect"
import type * as Endpoint from "./Endpoint.ts"

/** Operations that share a tag in OpenAPI and a scope of API keys. */
export interface Group<Operations extends Array.NonEmptyReadonlyArray<Endpoint.Servable>> {
  readonly operations: Operations
  /** The scope that an API key needs; undefined where no key is needed. */
  readonly scope: ApiKey.Scope | undefined
  /** A description for the documentation. */
  readonly description: string | undefined
}

export type Groups = Readonly<Record<string, Group<Array.NonEmptyReadonlyArray<Endpoint.Servable>>>>

/** All operations of the groups. */
export type OperationsOf<G extends Groups> = G[keyof G]["operations"][number]

/** A group whose operations need a key with `scope`: `operations` by default. */
export const group = <const Operations extends Array.NonEmptyReadonlyArray<Endpoint.Servable>>(
  operations: Operations,
  { scope = "operations", description }: { readonly scope?: ApiKey.Scope; readonly description?: string } = {}
): Group<Operations> => ({ operations, scope, description })

/** A group for callers without a key. They are limited by client address, and the operations must cost nothing. */
export const publicGroup = <const Operations extends Array.NonEmptyReadonlyArray<Endpoint.Servable>>(
  operations: Operations,
  { description }: { readonly description?: string } = {}
): Group<Operations> => ({ operations, scope: undefined, description })
