/** The data of a reply and the result of a job are what their types say, fresh and replayed, whatever the schema's library. */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { toStandardJsonSchema } from "@valibot/to-json-schema"
import { type } from "arktype"
import { type DateTime, Option, Schema, SchemaTransformation } from "effect"
import * as v from "valibot"
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from "vitest"
import { z } from "zod"
import { createMillrace, type Host, job, type Operation, operation, UpstreamUnavailable } from "../../src/index.ts"

const AT = "2026-03-01T09:00:00.000Z"

/** How often the transformation of a result ran. */
let doubled = 0
const Doubled = Schema.Int.pipe(
  Schema.decodeTo(
    Schema.Int,
    SchemaTransformation.transform({
      decode: (n) => {
        doubled++
        return n * 2
      },
      encode: (n) => n / 2
    })
  )
)

class Mill extends Schema.Class<Mill>("Mill")({ sails: Schema.Int }) {
  get isWhole() {
    return this.sails === 4
  }
}

const Made = Schema.Struct({
  at: Schema.DateFromString,
  by: Schema.OptionFromNullOr(Schema.String),
  none: Schema.OptionFromNullOr(Schema.DateTimeUtcFromString),
  twice: Doubled,
  size: Schema.FiniteFromString,
  big: Schema.BigIntFromString,
  mill: Mill
})

const RETURNED = { at: AT, by: "Ada", none: null, twice: 4, size: "5", big: "7", mill: { sails: 4 } }
const JSON_OF_MADE = { at: AT, by: { _tag: "Some", value: "Ada" }, none: { _tag: "None" }, twice: 8, size: 5, big: "7", mill: { sails: 4 } }

const described = { summary: "Make", price: 1 }
const route = <const P extends string>(name: P) => ({ method: "POST", path: `/${name}` as const }) as const

const byEffect = operation("made.effect", { ...described, route: route("effect"), success: Made, run: () => RETURNED })
const byPlainEffect = operation("made.plain", {
  ...described,
  route: route("plain"),
  success: Schema.Struct({ n: Schema.Int }),
  run: () => ({ n: 1 })
})
const byZod = operation("made.zod", {
  ...described,
  route: route("zod"),
  success: z.object({ name: z.string().default("Ada"), size: z.string().transform(Number).pipe(z.number()), age: z.int().optional() }),
  run: () => ({ size: "5" })
})
const byValibot = operation("made.valibot", {
  ...described,
  route: route("valibot"),
  success: toStandardJsonSchema(
    v.object({ name: v.optional(v.string(), "Ada"), size: v.pipe(v.string(), v.transform(Number), v.number()), tags: v.array(v.string()) })
  ),
  run: () => ({ size: "5", tags: ["a"] })
})
// arktype documents a date as any value, so it is not refused
const byArktype = operation("made.arktype", {
  ...described,
  route: route("arktype"),
  success: type({ at: "string.date.iso.parse", "size?": "string.numeric.parse", "kinds?": "('wind' | 'water')[]" }),
  run: () => ({ at: AT, size: "5", kinds: ["wind"] as Array<"wind"> })
})

const resumed: Array<unknown> = []
const making = job("mill.make", {
  ...described,
  route: route("mills"),
  result: Made,
  checkpoint: Schema.Struct({ at: Schema.Date, by: Schema.Option(Schema.String) }),
  run: async (_, { attempt, checkpoint, progress }) => {
    resumed.push(checkpoint)
    if (attempt > 1) return RETURNED
    await progress(50, { at: new Date(AT), by: Option.some("Ada") })
    throw new UpstreamUnavailable("no wind")
  }
})

let host: Host
let account: string
beforeAll(async () => {
  const operations = [byEffect, byPlainEffect, byZod, byValibot, byArktype, making]
  host = await createMillrace({ store: "memory:", log: {}, operations })
  account = await host.accounts.open({ email: "ada@example.com", verified: true })
})
afterAll(() => host.close())

/** The data of a call, and of the same call sent again. */
const twice = async <Data>(own: Operation<object, Data>): Promise<ReadonlyArray<Data>> => {
  const options = { account, idempotencyKey: own.key }
  const first = await host.run(own, {}, options)
  const again = await host.run(own, {}, options)
  expect([first.replayed, again.replayed]).toEqual([false, true])
  return [first.data as Data, again.data as Data]
}

interface Decoded {
  readonly at: Date
  readonly by: Option.Option<string>
  readonly none: Option.Option<DateTime.Utc>
  readonly twice: number
  readonly size: number
  readonly big: bigint
  readonly mill: Mill
}

const expectMade = (made: Decoded | null) => {
  expect(made).toStrictEqual({
    ...{ at: new Date(AT), by: Option.some("Ada"), none: Option.none(), twice: 8, size: 5, big: 7n, mill: new Mill({ sails: 4 }) }
  })
  expect(made?.mill.isWhole).toBe(true)
}

describe("the data of a reply", () => {
  it("is decoded by a schema of Effect, once, and a replay has the same", async () => {
    doubled = 0
    for (const data of await twice(byEffect)) {
      expectTypeOf(data).toEqualTypeOf<Decoded>()
      expectMade(data)
    }
    expect(doubled).toBe(1)
    expectTypeOf((await twice(byPlainEffect))[0]).toEqualTypeOf<{ readonly n: number } | undefined>()
    expect(byPlainEffect.decodeData).toBeUndefined()
  })

  it("is JSON over HTTP, as the document says", async () => {
    const { key } = await host.keys.issue(account)
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    const ask = async (path: string, init: RequestInit) => (await host.fetch(new Request(`http://host/api/v1${path}`, init))).json()
    expect(await ask("/effect", { method: "POST", headers, body: "{}" })).toMatchObject({ data: JSON_OF_MADE })
    expect(JSON.stringify(await ask("/openapi.json", {}))).toContain('"by":{"anyOf":[{"type":"object","properties":{"_tag":')
  })

  it("has the defaults and transformations of zod and valibot", async () => {
    for (const data of await twice(byZod)) {
      expectTypeOf(data).toEqualTypeOf<{ name: string; size: number; age?: number | undefined }>()
      expect(data).toStrictEqual({ name: "Ada", size: 5 })
    }
    for (const data of await twice(byValibot)) {
      expectTypeOf(data).toEqualTypeOf<{ name: string; size: number; tags: Array<string> }>()
      expect(data).toStrictEqual({ name: "Ada", size: 5, tags: ["a"] })
    }
  })

  it("is text where a schema of arktype makes a date, and its type says so", async () => {
    for (const data of await twice(byArktype)) {
      expectTypeOf(data).toEqualTypeOf<{ at: string; size?: number; kinds?: Array<"wind" | "water"> }>()
      expect(data).toStrictEqual({ at: AT, size: 5, kinds: ["wind"] })
    }
  })

  it("is refused in a sentence where a later schema cannot read what an earlier one stored", async () => {
    const later = operation("made.plain", {
      ...described,
      route: route("plain"),
      success: Schema.Struct({ n: Schema.Date }),
      run: () => ({ n: new Date() })
    })
    const folder = mkdtempSync(join(tmpdir(), "millrace-data-"))
    const store = `sqlite:${join(folder, "millrace.db")}`
    const call = { account: "ada", idempotencyKey: "earlier" }
    const before = await createMillrace({ store, log: {}, operations: [byPlainEffect] })
    await before.accounts.open({ id: "ada", verified: true })
    await before.run(byPlainEffect, {}, call)
    await before.close()
    const after = await createMillrace({ store, log: {}, operations: [later] })
    await expect(after.run(later, {}, call)).rejects.toMatchObject({
      code: "operation_failed",
      reason: expect.stringMatching(/^its stored result does not match its schema: .*\["n"\]/su)
    })
    await after.close()
    rmSync(folder, { recursive: true, force: true })
  })
})

describe("a result that JSON does not have", () => {
  const define = (success: z.ZodType) => operation("a.b", { ...described, route: route("x"), success, run: () => undefined })
  it.each([
    ["zod", () => define(z.date())],
    ["zod, coerced", () => define(z.coerce.date())],
    ["zod, transformed", () => define(z.string().transform((text) => new Date(text)))],
    ["zod, a map", () => define(z.map(z.string(), z.string()))],
    ["valibot", () => define(toStandardJsonSchema(v.pipe(v.string(), v.toDate())) as never)],
    ["valibot, a bigint", () => define(toStandardJsonSchema(v.bigint()) as never)]
  ])("is refused when the operation is defined: %s", (_, make) => {
    expect(make).toThrow('the result of "a.b" cannot be documented')
  })
})

it("the result of a job is decoded, and so is what its next attempt resumes from", async () => {
  const { data } = await host.run(making, {}, { account })
  expectTypeOf(data.status).toEqualTypeOf<"queued" | "running" | "succeeded" | "failed">()
  const { result, status } = await host.jobs.wait(making, data.id, { account, timeout: 20_000 })
  expectTypeOf(result).toEqualTypeOf<Decoded | null>()
  expect(status).toBe("succeeded")
  expectMade(result)
  expect((await host.jobs.read(making, data.id, { account })).result).toStrictEqual(result)
  expect(resumed).toStrictEqual([undefined, { at: new Date(AT), by: Option.some("Ada") }])
})
