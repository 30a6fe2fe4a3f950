/** Every error that a package exports says in a sentence what is wrong, whatever its fields. */
import * as audit from "@millrace/audit"
import * as core from "@millrace/core"
import * as kernel from "@millrace/event-sourcing"
import * as kurrentdb from "@millrace/event-store-kurrentdb"
import * as postgres from "@millrace/event-store-postgres"
import * as sqlite from "@millrace/event-store-sqlite"
import * as http from "@millrace/http"
import * as testing from "@millrace/testing"
import { Arbitraries } from "@millrace/testing"
import * as espeak from "@millrace/upstream-espeak"
import * as upstreams from "@millrace/upstreams"
import { Schema } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"

const PACKAGES = { kernel, sqlite, postgres, kurrentdb, core, audit, upstreams, espeak, http, testing }

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
        expect(message.trim().split(/\s+/u).length).toBeGreaterThanOrEqual(3)
        expect(message).not.toMatch(/undefined|\[object|NaN/u)
      }),
      { numRuns: 20 }
    )
  })
})

test("there are errors to look at", () => {
  expect(errors.length).toBeGreaterThan(50)
})
