/** Forms from the contract of the standard API: each makes the request of its own example, and refuses what cannot be one. */
import { Api } from "@millrace/http"
import { OpenApi } from "effect/http-api"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { contractOf, type Operation } from "../web/Contract.ts"
import { exampleOf, fieldsOf, quantityOf, requestOf } from "../web/Form.ts"

const contract = contractOf(JSON.parse(JSON.stringify(OpenApi.fromApi(Api.make(Api.standard).contract))))

const operation = (key: string): Operation => {
  const found = contract.byKey(key)
  if (found === undefined) throw new Error(`${key} is not in the document`)
  return found
}

describe("the contract", () => {
  test("has every operation of the API, with its group, its price and whether it needs a key", () => {
    const keys = Object.values(Api.standard).flatMap(({ operations }) => operations.map(({ key }) => key))
    expect(contract.operations.map(({ key }) => key)).toEqual(expect.arrayContaining(keys))
    expect(operation("catalog.read")).toMatchObject({ group: "catalog", isPublic: true, method: "GET", path: "/api/v1/catalog" })
    expect(operation("speech.synthesize")).toMatchObject({ isPublic: false, waits: true })
    expect(operation("speech.synthesize").links).toContainEqual({ operation: "speech.read", parameters: { job: "id" } })
    expect(contract.find("GET", "/api/v1/account/calls")?.key).toBe("account.calls")
    expect(contract.find("GET", "/api/v1/nothing")).toBeUndefined()
  })
})

describe("a form", () => {
  test.each(contract.operations.map((operation) => [operation.key, operation] as const))("%s: its example is a request", (_, operation) => {
    const fields = fieldsOf(operation)
    const request = requestOf(operation, fields, exampleOf(fields))
    const isWhole = fields.every(({ example, required }) => !required || example !== undefined)
    expect(request.ok).toBe(isWhole)
    if (!request.ok) return
    expect(request.path).not.toMatch(/[{}]/u)
    const sent = operation.parameters.filter(({ example, place }) => place === "body" && example !== undefined)
    if (sent.length > 0) expect(request.body).toEqual(Object.fromEntries(sent.map(({ example, name }) => [name, example])))
  })

  test("has required fields first, and the control that fits each", () => {
    const controls = Object.fromEntries(fieldsOf(operation("image.edit")).map(({ control, name }) => [name, control]))
    expect(controls).toMatchObject({ prompt: "long", job_id: "text", width: "number", translate: "truth" })
    expect(fieldsOf(operation("dns.resolve")).map(({ control, name }) => [name, control])).toEqual([
      ["domain", "text"],
      ["type", "choice"]
    ])
    expect(fieldsOf(operation("email.validateBatch"))[0]).toMatchObject({ name: "emails", control: "lines", required: true })
  })

  test("names what is missing or wrong, and sends nothing then", () => {
    const edit = operation("image.edit")
    const fields = fieldsOf(edit)
    expect(requestOf(edit, fields, { width: "many", height: "99999", strength: "0.5" })).toEqual({
      ok: false,
      wrong: { prompt: "Give a value for prompt.", width: "Give a whole number.", height: "Give at most 2048." }
    })
  })

  test("puts any text into the path and the query so that the server reads that text", () =>
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: "grapheme" }), (text) => {
        fc.pre(text.trim() !== "")
        const dns = operation("dns.resolve")
        const request = requestOf(dns, fieldsOf(dns), { domain: text, type: "MX" })
        if (!request.ok) throw new Error("refused")
        const { pathname, searchParams } = new URL(request.path, "http://localhost")
        // A path of dots alone is the one that no encoding keeps
        if (!/^\.{1,2}$/u.test(text)) expect(decodeURIComponent(pathname.replace("/api/v1/dns/", ""))).toBe(text)
        expect(searchParams.get("type")).toBe("MX")
      })
    ))

  test("counts the units that are priced: the items of its only list", () => {
    const batch = fieldsOf(operation("email.validateBatch"))
    expect(quantityOf(batch, { emails: "a@example.com\n\nb@example.com\n" })).toBe(2)
    expect(quantityOf(batch, {})).toBe(1)
    expect(quantityOf(fieldsOf(operation("grammar.check")), { text: "one\ntwo" })).toBe(1)
  })
})
