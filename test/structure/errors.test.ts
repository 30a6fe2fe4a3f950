/** Every error that a package exports says in a sentence what is wrong, whatever its fields. */
import * as audit from "@millrace/audit"
import * as core from "@millrace/core"
import * as kernel from "@millrace/event-sourcing"
import * as kurrentdb from "@millrace/event-store-kurrentdb"
import * as postgres from "@millrace/event-store-postgres"
import * as sqlite from "@millrace/event-store-sqlite"
import * as http from "@millrace/http"
import * as client from "@millrace/http/client"
import * as testing from "@millrace/testing"
import { Arbitraries } from "@millrace/testing"
import * as espeak from "@millrace/upstream-espeak"
import * as youtubei from "@millrace/upstream-youtubei"
import * as upstreams from "@millrace/upstreams"
import { Schema } from "effect"
import fc from "fast-check"
import * as host from "millrace"
import { describe, expect, test } from "vitest"
import { ERROR_CODES, termsOf } from "../../packages/http/src/ErrorCode.ts"

const PACKAGES = { kernel, sqlite, postgres, kurrentdb, core, audit, upstreams, espeak, youtubei, http, testing }

type ErrorClass = Schema.Codec<Error, unknown> & { readonly identifier?: string; readonly name: string }

/** The tagged errors of a module and of the modules that it exports. */
const errorsOf = (module: object, seen = new Set<unknown>()): ReadonlyArray<ErrorClass> =>
  Object.values(module).flatMap((value: unknown) => {
    if (seen.has(value)) return []
    seen.add(value)
    if (typeof value === "function")
      return value.prototype instanceof Error && Schema.isSchema(value) ? [value as unknown as ErrorClass] : []
    return typeof value === "object" && value !== null && Object.prototype.toString.call(value) === "[object Module]"
      ? errorsOf(value, seen)
      : []
  })

const words = (sentence: string): number => sentence.trim().split(/\s+/u).length

/** Those whose sentence is given where they are made. */
const GIVEN = ["InvalidInput", "SimulationFailed"]

const errors = Object.entries(PACKAGES).flatMap(([name, module]) =>
  errorsOf(module).flatMap((error) => (GIVEN.includes(error.name) ? [] : [[name, error.name, error] as const]))
)

describe.each(errors)("%s: %s", (_, name, error) => {
  test("has a sentence", () => {
    fc.assert(
      fc.property(Arbitraries.arbitraryOf(error), ({ message }) => {
        expect(message).not.toBe(name)
        expect(words(message)).toBeGreaterThanOrEqual(3)
        expect(message).not.toMatch(/undefined|\[object|NaN/u)
      }),
      { numRuns: 20 }
    )
  })
})

/** Errors without a schema: they say what the host gives them, or what the server answered. */
const plainOf = (module: object): ReadonlyArray<string> =>
  Object.values(module).flatMap((value: unknown) =>
    typeof value === "function" && value.prototype instanceof Error && !Schema.isSchema(value) ? [value.name] : []
  )

describe("errors without a schema", () => {
  test("are those of hosts and of the client", () => {
    expect(Object.values(PACKAGES).flatMap(plainOf)).toEqual([])
    expect(plainOf(host).toSorted()).toEqual(["InvalidInput", "MillraceError", "NotFound", "UpstreamUnavailable"])
    const answered = ["AccountBlocked", "ApiError", "Conflict", "CostExceedsLimit", "Forbidden", "InsufficientCredits", "InvalidRequest"]
    const others = ["MillraceError", "NoAnswer", "NotFound", "RateLimited", "Unauthorized", "Unavailable", "UnexpectedAnswer"]
    expect(plainOf(client).toSorted()).toEqual([...answered, ...others])
  })

  test("that a host throws have a sentence", () => {
    const thrown = [
      new host.NotFound("invoice"),
      new host.InvalidInput("n", "must be even"),
      new host.UpstreamUnavailable("no route there")
    ]
    expect(thrown.map(({ code }) => code)).toEqual(["not_found", "invalid_input", "upstream_unavailable"])
    for (const { message } of thrown) expect(words(message)).toBeGreaterThanOrEqual(3)
  })

  test.each(ERROR_CODES)("are answered with a sentence: %s", (code) => {
    expect(words(termsOf(code).means)).toBeGreaterThanOrEqual(3)
  })
})

test("there are errors to look at", () => {
  expect(errors.length).toBeGreaterThan(50)
})
