/** The types of a client's methods, from the types of operations: `bin.lookup` is `client.bin.lookup({ bin })`. */
import type { Operation } from "@millrace/core"
import type { Schema } from "effect"
import type { Described } from "./Routes.ts"

/** A value as JSON has it. */
export type Json<A> = A extends string | number | boolean | null | undefined
  ? A
  : A extends Date | bigint | Uint8Array | URL
    ? string
    : A extends object
      ? { readonly [Key in keyof A]: Json<A[Key]> }
      : A

/** Optional fields may also be undefined. */
type Lenient<A> = { readonly [Key in keyof A]: {} extends Pick<A, Key> ? A[Key] | undefined : A[Key] }

/** Path, query and body fields of an operation, together, as its documentation shows them. */
export type InputOf<Op> = Op extends { readonly route: infer Route extends Operation.Route }
  ? Lenient<Json<Schema.Struct.Encoded<Route["params"] & Route["query"] & Route["body"]>>>
  : never

/** The `data` of an operation's answer, as its documentation shows it; the bytes of a file. */
export type DataOf<Op> = Op extends { readonly _tag: "File" } ? Uint8Array<ArrayBuffer> : JsonOf<Op>

type JsonOf<Op> = Op extends { readonly success: infer Success extends Schema.Top } ? Json<Success["Encoded"]> : never

/** The input may be left out if it has no required fields. */
export type Arguments<Input, Options> = {} extends Input ? [input?: Input, options?: Options] : [input: Input, options?: Options]

type Group<Key> = Key extends `${infer Head}.${string}` ? Head : Key
type Name<Head extends string, Key> = Key extends `${Head}.${infer Rest}` ? Rest : never

/** Methods grouped by the part of the key before the first dot. A key without a dot is a method of the client itself. */
export type Grouped<Op extends Described, Methods extends Readonly<Record<Op["key"], unknown>>> = {
  readonly [Head in Group<Op["key"]>]: Head extends Op["key"]
    ? Methods[Head]
    : { readonly [Key in Extract<Op["key"], `${Head}.${string}`> as Name<Head, Key>]: Methods[Key] }
}

/** Groups the methods as {@link Grouped} does their types. */
export const grouped = (methods: ReadonlyArray<readonly [key: string, method: unknown]>): Readonly<Record<string, unknown>> => {
  const client: Record<string, unknown> = {}
  const groups = new Map<string, Record<string, unknown>>()
  for (const [key, method] of methods) {
    const dot = key.indexOf(".")
    if (dot === -1) {
      client[key] = method
      continue
    }
    const head = key.slice(0, dot)
    const group = groups.get(head) ?? {}
    group[key.slice(dot + 1)] = method
    groups.set(head, group)
    client[head] = group
  }
  return client
}
