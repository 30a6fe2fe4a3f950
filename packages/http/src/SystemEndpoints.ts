/** The endpoints that describe the process itself, to callers without a key: health, readiness and the OpenAPI document. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { PREFIX } from "./Endpoint.ts"
import { errorSchemas, protocolErrorSchemas } from "./ErrorCode.ts"
import { Health, Ready } from "./Readiness.ts"

export const HEALTH = "/health"
export const READY = "/ready"
export const OPENAPI = `${PREFIX}/openapi.json`

export const system = HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("health", HEALTH, { success: Health, error: protocolErrorSchemas }).annotateMerge(
      OpenApi.annotations({ summary: "Whether the process is alive", description: "Liveness probe: whether the process answers." })
    ),
    HttpApiEndpoint.get("ready", READY, {
      success: Ready,
      error: [Ready.pipe(HttpApiSchema.status(503)), ...protocolErrorSchemas]
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Whether it can serve calls, and why not",
        description: "Readiness probe: whether its stores answer and its projections are caught up."
      })
    ),
    HttpApiEndpoint.get("openapi", OPENAPI, {
      success: Schema.Record(Schema.String, Schema.Unknown),
      error: errorSchemas({ isPublic: true, hasBody: false })
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "catalog.openapi",
        summary: "This document",
        description: "The OpenAPI 3.1 document of all routes."
      })
    )
  )
  .annotateMerge(OpenApi.annotations({ description: "Health, readiness and this document. No key is needed." }))
