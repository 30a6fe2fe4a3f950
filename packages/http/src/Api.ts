/** The API as a value: groups of operations, from which the contract, the routes, the document and the clients derive. */

import { type ApiKey, Standard as Registry } from "@millrace/core"
import { Array } from "effect"
import { HttpApi, HttpApiGroup, OpenApi } from "effect/http-api"
import * as Endpoint from "./Endpoint.ts"
import * as Document from "./openapi/Document.ts"
import { system } from "./SystemEndpoints.ts"

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

/** The operations that come with Millrace. */
export const standard: Standard = Registry.groups

export type Standard = typeof Registry.groups

export type Contract<G extends Groups> = HttpApi.HttpApi<
  "millrace",
  | typeof system
  | { [Name in keyof G & string]: HttpApiGroup.HttpApiGroup<Name, Endpoint.EndpointOf<G[Name]["operations"][number]>> }[keyof G & string]
>

export interface Api<G extends Groups> {
  readonly groups: G
  /** All operations, for `Millrace.layer`. */
  readonly operations: ReadonlyArray<OperationsOf<G>>
  /** The contract, for `HttpApiClient` and `OpenApi`. */
  readonly contract: Contract<G>
}

/** Builds an API. Throws when two operations share a key, or a method and a path. */
export const make = <const G extends Groups>(groups: G, info: Document.Info = {}): Api<G> => {
  const operations: ReadonlyArray<OperationsOf<G>> = Object.values(groups).flatMap(({ operations }) => operations)
  assertDistinct(operations)
  const described = Object.entries(groups).map(([name, { operations, scope, description }]) =>
    HttpApiGroup.make(name)
      .add(...Array.map(operations, (operation) => Endpoint.make(operation, scope === undefined)))
      .annotateMerge(OpenApi.annotations(description === undefined ? {} : { description }))
  )
  const access = Object.values(groups).flatMap(({ operations, scope }) =>
    operations.map((operation) => ({ operation, isPublic: scope === undefined }))
  )
  const contract = HttpApi.make("millrace")
    .add(system, ...described)
    .annotateMerge(OpenApi.annotations({ transform: (spec) => Document.complete(spec, access, info) }))
  return { groups, operations, contract: contract as unknown as Contract<G> }
}

const assertDistinct = (operations: ReadonlyArray<Endpoint.Servable>): void => {
  const seen = new Map<string, string>()
  for (const { key, route } of operations) {
    const place = `${route.method} ${route.path}`
    // The names of parameters do not make paths different
    const shared = [
      [key, `the key ${key}`],
      [place.replaceAll(/:\w+/gu, ":"), place]
    ] as const
    for (const [name, what] of shared) {
      const other = seen.get(name)
      if (other !== undefined) throw new Error(other === key ? `Two operations share ${what}` : `${other} and ${key} share ${what}`)
      seen.set(name, key)
    }
  }
}
