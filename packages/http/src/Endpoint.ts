/** Makes an endpoint of the contract from an operation: its request, its answer and its errors. */

import type { Operation } from "@millrace/core"
import { Schema } from "effect"
import { HttpMethod } from "effect/http"
import { HttpApiEndpoint, HttpApiSchema, OpenApi } from "effect/http-api"
import { Envelope } from "./Envelope.ts"
import { type ErrorBody, errorSchemas } from "./ErrorCode.ts"

/** The path below which all operations are. */
export const PREFIX = "/api/v1"

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

/** Fields whose schemas need no services. */
// biome-ignore lint/suspicious/noExplicitAny: whatever they hold
export type Fields = Readonly<Record<string, Schema.Codec<any, any>>>

/** Any operation that can be served. */
export type Servable = Operation.Any & { readonly route: Operation.Route<Method, `/${string}`, Fields, Fields, Fields> }

/** The services that an operation needs. */
export type Services<Op extends Servable> = Operation.Services<Op>

/** The type of an operation's endpoint. Parts of the request without fields are left out. */
export type EndpointOf<Op> =
  Op extends Operation.Operation<infer Key, infer Route, infer Success, infer _E, infer _R>
    ? HttpApiEndpoint.HttpApiEndpoint<
        Key,
        Route["method"] & Method,
        `${typeof PREFIX}${Route["path"]}`,
        Text<Part<Route["params"]>>,
        Text<Part<Route["query"]>>,
        Route["method"] extends "GET" ? never : Json<Part<Route["body"]>>,
        never,
        Op extends { readonly _tag: "File" } ? typeof File : Json<ReturnType<typeof Envelope<Success>>>,
        Json<typeof ErrorBody>
      >
    : never

type Part<F extends Schema.Struct.Fields> = keyof F extends never ? never : Schema.Struct<F>
type Text<S extends Schema.Top> = [S] extends [never] ? never : Schema.toCodecStringTree<S>
type Json<S extends Schema.Top> = [S] extends [never] ? never : Schema.toCodecJson<S>

const part = (fields: Fields) => (Object.keys(fields).length === 0 ? undefined : Schema.Struct(fields))

/** Turns `grammar.check` into `GrammarCheck`. */
const pascal = (key: string): string => key.replaceAll(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/gu, (_, letter: string) => letter.toUpperCase())

/** A file is answered without an envelope. */
const File = Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array())

/** The endpoint of an operation. `isPublic`: callers need no key. */
export const make = <Op extends Servable>({ _tag, key, summary, success, route }: Op, isPublic: boolean): EndpointOf<Op> =>
  HttpApiEndpoint.make(route.method)(key, `${PREFIX}${route.path}`, {
    params: part(route.params),
    query: part(route.query),
    payload: route.method === "GET" ? undefined : part(route.body),
    success:
      _tag === "File"
        ? File
        : Envelope(success)
            .annotate({ identifier: `${pascal(key)}Reply` })
            .pipe(HttpApiSchema.status(route.status)),
    error: errorSchemas({ isPublic, hasBody: HttpMethod.hasBody(route.method), isFile: _tag === "File" })
  }).annotateMerge(OpenApi.annotations({ identifier: key, summary })) as EndpointOf<Op>
