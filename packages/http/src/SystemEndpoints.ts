/** The endpoints that are no operations: health, readiness, the OpenAPI document, and the events of an account as they happen. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { PREFIX } from "./Endpoint.ts"
import { errorSchemas, protocolErrorSchemas } from "./ErrorCode.ts"
import { Health, Ready } from "./Readiness.ts"

export const HEALTH = "/health"
export const READY = "/ready"
export const OPENAPI = `${PREFIX}/openapi.json`
export const EVENTS = `${PREFIX}/account/events`

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
    ),
    HttpApiEndpoint.get("accountEvents", EVENTS, {
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })),
      error: errorSchemas({ isPublic: false, hasBody: false })
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "account.events",
        summary: "What happens to the account, as server-sent events",
        description:
          "Each event `changed` has JSON: `balance`, `held` and `debt` in credits, `account` (whether anything happened to credits or calls), and the ids of `jobs` and `inboxes` to which something happened. Events are hints: read again what you show. The first event comes at once. A comment comes every 20 seconds. The stream ends with its key or session; at most 16 are open for an account at a host.",
        override: { security: [{ apiKey: [] }] }
      })
    )
  )
  .annotateMerge(OpenApi.annotations({ description: "Health, readiness, this document, and the events of an account." }))
