/** The rows as data: whole, consistent, and priced as their operations are. */
import { Standard } from "@millrace/core"
import { describe, expect, test } from "vitest"
import { accepted, refused } from "./Cases.ts"
import { PLACES } from "./Row.ts"
import { BEYOND, rows } from "./Rows.ts"

describe("the rows", () => {
  test("stand each once, at the price of their operation", () => {
    const prices = Object.fromEntries(rows.map(({ key, price }) => [key, price?.credits ?? 0]))
    const specified = Standard.operations.filter(({ key }) => !BEYOND.has(key))
    // The document is no operation
    expect(prices).toEqual({ ...Object.fromEntries(specified.map(({ key, price }) => [key, price])), "catalog.openapi": 0 })
    expect(Standard.operations.length - specified.length).toBe(BEYOND.size)
    expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length)
    for (const { notShown, price } of rows) expect(notShown.includes("cost")).toBe(price === undefined)
  })

  test("have distinct routes that name the parameters of the path", () => {
    // Whatever the parameters are called
    const places = rows.map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/gu, "{}")}`)
    expect(new Set(places).size).toBe(rows.length)
    for (const { path, parameters } of rows) {
      expect(path).toMatch(/^\/api\/v1(?:\/(?:[a-z0-9.-]+|\{\w+\}))+$/u)
      expect([...path.matchAll(/\{(\w+)\}/gu)].map(([, name]) => name)).toEqual(Object.keys(parameters.path))
      for (const parameter of Object.values(parameters.path)) expect(parameter.required).toBe(true)
    }
  })

  test("have each parameter in one place, and no body where the method has none", () => {
    for (const { method, key, parameters } of rows) {
      const names = PLACES.flatMap((place) => Object.keys(parameters[place]))
      expect(new Set(names).size, key).toBe(names.length)
      if (method !== "POST") expect(parameters.body, key).toEqual({})
    }
  })

  test("have samples within their own bounds", () => {
    for (const { key, parameters } of rows) {
      for (const parameter of PLACES.flatMap((place) => Object.values(parameters[place]))) {
        if ("oneOf" in parameter || parameter.type === "boolean") continue
        if (parameter.type === "strings") {
          expect(parameter.minItems ?? 0, key).toBeLessThanOrEqual(parameter.maxItems ?? 1)
          continue
        }
        if (parameter.type === "string") {
          const { minLength = 0, maxLength = 10_000, ofLength, sample } = parameter
          if (sample !== undefined) expect(sample.length >= minLength && sample.length <= maxLength, key).toBe(true)
          const bounds = [minLength, maxLength, maxLength + 1].filter((length) => length > 0)
          for (const length of bounds) expect(ofLength?.(length).length ?? length, key).toBe(length)
          continue
        }
        const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY, sample, type } = parameter
        expect(sample >= minimum && sample <= maximum && (type === "number" || Number.isInteger(sample)), key).toBe(true)
      }
    }
  })
})

describe("the cases of a row", () => {
  test("can be made for each row, and describe it", () => {
    for (const row of rows) {
      const names = [...accepted(row), ...refused(row)].map(({ name }) => name)
      expect(new Set(names).size, `${row.key}: ${names.join("\n")}`).toBe(names.length)
    }
  })
})
