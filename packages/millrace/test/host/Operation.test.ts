/** Operations of a host without Effect: how they are defined, what their work may do, and what its callers are told. */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { z } from "zod"
import {
  charging,
  createMillrace,
  type Host,
  InvalidInput,
  MillraceError,
  NotFound,
  operation,
  UpstreamUnavailable
} from "../../src/index.ts"

const text = z.object({ text: z.string() })
const route = { method: "POST", path: "/work", body: text } as const
const described = { summary: "Work", price: 2, success: text, route }

describe("a definition that is wrong", () => {
  const greeting = { ...described, run: () => ({ text: "" }) }

  it("is refused where the path has a parameter without a schema, by the compiler too", () => {
    // @ts-expect-error the path has a parameter
    expect(() => operation("a.b", { ...greeting, route: { method: "GET", path: "/x/:id" } })).toThrow(
      'The path of "a.b" has :id, and its params have no field id'
    )
    const params = z.object({ name: z.string() })
    // @ts-expect-error the path has another parameter
    expect(() => operation("a.b", { ...greeting, route: { method: "GET", path: "/x/:id", params } })).toThrow("has :id")
  })

  it("is refused where the params have a field that the path has not", () => {
    const params = z.object({ id: z.string(), name: z.string() })
    // @ts-expect-error the path has no such parameter
    expect(() => operation("a.b", { ...greeting, route: { method: "GET", path: "/x/:id", params } })).toThrow(
      'The params of "a.b" have a field name, and its path has no :name'
    )
  })

  it.each([-1, 0.0001, Number.NaN, undefined])("is refused where the price is %s", (price) => {
    expect(() => operation("a.b", { ...greeting, price: price as number })).toThrow(`The price of "a.b" is ${price}: give credits`)
  })

  it("names the operation whose schema cannot be documented", () => {
    expect(() => operation("a.b", { ...greeting, success: z.date() as unknown as typeof text })).toThrow(
      'the result of "a.b" cannot be documented'
    )
  })
})

describe("the work of an operation", () => {
  let signals: Array<AbortSignal> = []
  const works: Readonly<Record<string, (input: { text: string }) => unknown>> = {
    plain: ({ text }) => ({ text }),
    async: async ({ text }) => ({ text }),
    effect: ({ text }) => Effect.succeed({ text }),
    less: ({ text }) => charging(1, { text })
  }
  const work = operation("work.do", {
    ...described,
    quantity: ({ text }) => (text === "less" ? 3 : 1),
    run: async ({ text }, { signal }) => {
      signals.push(signal)
      if (text === "unavailable") throw new UpstreamUnavailable("the printer is on fire")
      if (text === "invalid") throw new InvalidInput("text", "is not a word")
      if (text === "missing") throw new NotFound("word")
      if (text === "thrown") throw new RangeError("too far")
      if (text === "wrong") return { text: 3 as never }
      if (text === "hanging") return new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
      const returned = works[text]?.({ text }) ?? { text }
      return Effect.isEffect(returned) ? Effect.runPromise(returned as Effect.Effect<{ text: string }>) : (returned as { text: string })
    }
  })
  const returning = operation("work.return", {
    ...described,
    route: { ...route, path: "/return" },
    run: ({ text }) => works[text]?.({ text }) as { text: string }
  })

  let millrace: Host
  let account: string
  beforeAll(async () => {
    millrace = await createMillrace({ store: "memory:", log: {}, operations: [work, returning] })
    account = await millrace.accounts.open({ email: "ada@example.com", verified: true })
  })
  afterAll(() => millrace.close())

  const balance = () => millrace.balance(account).then(({ available }) => available)
  const failure = async (text: string) => {
    const before = await balance()
    const error = await millrace.run(work, { text }, { account }).then(
      () => undefined,
      (error: unknown) => error
    )
    expect(await balance()).toBe(before)
    expect(error).toBeInstanceOf(MillraceError)
    return error as MillraceError
  }

  it.each(["plain", "async", "effect"])("may return a value: %s", async (text) => {
    const before = await balance()
    expect(await millrace.run(returning, { text }, { account })).toMatchObject({ data: { text }, charged: 2, balance: before - 2 })
  })

  it("is charged for the units it did, where they are fewer than asked for", async () => {
    expect(await millrace.run(work, { text: "less" }, { account })).toMatchObject({ charged: 2 })
  })

  it("runs once under an idempotency key, and is charged once", async () => {
    const first = await millrace.run(work, { text: "once" }, { account, idempotencyKey: "k" })
    const again = await millrace.run(work, { text: "once" }, { account, idempotencyKey: "k" })
    expect([first.charged, first.replayed, again.charged, again.replayed]).toEqual([2, false, 0, true])
    expect([again.data, again.requestId, again.balance]).toEqual([first.data, first.requestId, first.balance])
    await expect(millrace.run(work, { text: "other" }, { account, idempotencyKey: "k" })).rejects.toMatchObject({ code: "key_reused" })
  })

  it.each([
    ["unavailable", { code: "upstream_unavailable", reason: "the printer is on fire" }],
    ["invalid", { code: "invalid_input", field: "text", message: expect.stringContaining("is not a word") }],
    ["missing", { code: "not_found", resource: "word" }],
    [
      "thrown",
      {
        code: "operation_failed",
        reason: expect.stringMatching(/^it threw RangeError: too far \(at .*Operation\.test\.ts(?:\?vitest=\d+)?:\d+:\d+\)+$/u)
      }
    ],
    ["wrong", { code: "operation_failed", reason: expect.stringContaining("its result breaks its own schema: text: ") }]
  ])("costs nothing when it fails, and the caller learns why: %s", async (text, facts) => {
    expect(await failure(text)).toMatchObject(facts)
  })

  it("has every issue of its input in one failure, and nothing is held", async () => {
    await expect(millrace.run(work, { text: 3 as never }, { account })).rejects.toMatchObject({ code: "invalid_input", field: "text" })
  })

  it("is aborted when its caller aborts the call, which then costs nothing", async () => {
    signals = []
    const before = await balance()
    const abort = new AbortController()
    const call = millrace.run(work, { text: "hanging" }, { account, signal: abort.signal })
    await expect.poll(() => signals.length).toBe(1)
    abort.abort(new Error("enough"))
    await expect(call).rejects.toThrow("enough")
    expect(signals[0]?.aborted).toBe(true)
    await expect.poll(balance).toBe(before)
  })

  it("does not begin where the call would cost more than its caller allows", async () => {
    signals = []
    const call = millrace.run(work, { text: "dear" }, { account, maxCredits: 1.5 })
    await expect(call).rejects.toMatchObject({ code: "cost_exceeds_limit", cost: 2, limit: 1.5 })
    expect(signals).toEqual([])
    await expect(millrace.run(work, { text: "dear" }, { account, maxCredits: -1 })).rejects.toMatchObject({ code: "invalid_amount" })
  })
})
