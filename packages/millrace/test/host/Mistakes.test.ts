/** Mistakes of callers in JavaScript: each is told in a sentence, at once. */
import { Effect, Option } from "effect"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import * as ErasureRegister from "../../src/ErasureRegister.ts"
import { createMillrace, job, operation } from "../../src/index.ts"
import * as SettingNames from "../../src/SettingNames.ts"

const given = {
  summary: "Work",
  price: 1,
  route: { method: "GET", path: "/x" },
  success: z.object({}),
  result: z.object({}),
  run: () => ({})
}

describe.each([
  ["operation", operation],
  ["job", job]
] as const)("%s", (_, define) => {
  it.each([
    [["greet", given], 'The operation "greet" needs a key of an area and a name'],
    [["a.b"], 'The operation "a.b" needs its options'],
    [["a.b", { ...given, summary: "" }], "needs a summary"],
    [["a.b", { ...given, run: undefined }], "needs run, the function that does its work; it is undefined"],
    [["a.b", { ...given, route: undefined }], "needs a route"],
    [["a.b", { ...given, route: { method: "FETCH", path: "/x" } }], 'has the method "FETCH"; give GET, POST'],
    [["a.b", { ...given, route: { method: "GET", path: "x" } }], 'has the path "x"; give one that begins with a slash'],
    [["a.b", { ...given, success: undefined, result: undefined }], 'the result of "a.b" is not a schema']
  ])("refuses %j", (args, sentence) => {
    expect(() => (define as (...args: ReadonlyArray<unknown>) => unknown)(...args)).toThrow(sentence)
  })
})

describe("createMillrace", () => {
  const create = createMillrace as (options?: unknown) => Promise<unknown>
  it.each([
    [undefined, "needs its options"],
    [{ operations: [] }, "needs a store"],
    [{ store: "memory:" }, "needs operations"],
    [{ store: "memory:", operations: [given] }, "neither operation() nor job() made"],
    [{ store: "postgres://localhost/none", operations: [] }, "needs the option masterKey or MILLRACE_MASTER_KEY"],
    [{ store: "kurrentdb://localhost", operations: [] }, "a place for what must be deletable: the option state,"],
    [
      { store: "postgres://localhost/none", masterKey: "5a".repeat(32), state: "sqlite:x.db", operations: [] },
      "the option state is for a log"
    ]
  ])("refuses %j", async (options, sentence) => {
    await expect(create(options)).rejects.toThrow(sentence)
  })
})

describe("a host", () => {
  it("refuses a call without an account, a grant without its payment, and prices that would wait", async () => {
    const work = operation("a.b", { ...given, route: { method: "GET", path: "/x" } as const })
    const host = await createMillrace({ store: "memory:", log: {}, operations: [work] })
    await expect(host.run(work, {}, undefined as never)).rejects.toThrow('A call of "a.b" needs the account that pays')
    await expect(host.run({} as never, {} as never, { account: "u" })).rejects.toThrow("run needs what operation() or job() made")
    await host.accounts.open({ id: "u" })
    await expect(host.credits.grant("u", { amount: 1, source: "topup" } as never)).rejects.toThrow("topup need the reference of a payment")
    await expect(host.credits.grant("u", { amount: 1, source: "gift" } as never)).rejects.toThrow("and not as gift")
    await host.prices.publish({ "a.b": 2 }, { effectiveAt: new Date("2999-01-01") })
    await expect(host.prices.publish({ "a.b": 3 })).rejects.toThrow("cannot precede it: name a time by the option effectiveAt")
    await host.close()
  })

  it("that erases on a store without a folder is asked for the option erasures", async () => {
    const needed = ErasureRegister.needed("postgres://localhost/none", Option.none())
    const named = Effect.provideService(needed, SettingNames.Current, SettingNames.OPTIONS)
    await expect(Effect.runPromise(named)).rejects.toThrow(/written down, by the option erasures$/u)
  })
})
