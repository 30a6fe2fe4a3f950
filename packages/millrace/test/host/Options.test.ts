/** What a host may choose: layers in place of the defaults, and the settings of the server. */
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { MasterKey, MemoryBlobStore } from "@millrace/core"
import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { createMillrace, job, operation, UpstreamUnavailable } from "../../src/index.ts"

class Rates extends Context.Service<Rates, { readonly of: (currency: string) => Effect.Effect<number> }>()("test/Rates") {}
const rates = Layer.succeed(Rates, { of: (currency) => Effect.succeed(currency === "EUR" ? 0.9 : 1) })

const convert = operation("currency.convert", {
  summary: "Convert an amount of US dollars",
  price: 0.5,
  route: {
    method: "GET",
    path: "/currency/:to",
    params: Schema.Struct({ to: Schema.String }),
    query: Schema.Struct({ amount: Schema.Finite })
  },
  success: Schema.Struct({ amount: Schema.Finite }),
  run: ({ amount, to }) =>
    Effect.map(
      Rates.use(({ of }) => of(to)),
      (rate) => ({ amount: amount * rate })
    )
})

const write = job("text.write", {
  summary: "Write a text to a file",
  price: 1,
  route: { method: "POST", path: "/texts", body: Schema.Struct({ text: Schema.String }) },
  result: Schema.Struct({ bytes: Schema.Finite }),
  files: ["text/plain"],
  run: async ({ text }, { store }) => ({ bytes: (await store(text, { contentType: "text/plain" })).size })
})

const free = operation("test.free", {
  summary: "Answer",
  price: 0,
  route: { method: "GET", path: "/free" },
  success: Schema.Struct({}),
  run: () => ({})
})

describe("the services of an operation that returns an Effect", () => {
  it("are an option that the types ask for", async () => {
    const host = await createMillrace({ store: "memory:", log: {}, operations: [convert, free], services: rates })
    const account = await host.accounts.open({ email: "ada@example.com", verified: true })
    expect((await host.run(convert, { to: "EUR", amount: 10 }, { account })).data.amount).toBe(9)
    await host.close()
    // @ts-expect-error the operation needs `Rates`
    await (await createMillrace({ store: "memory:", log: {}, operations: [convert] })).close()
    // @ts-expect-error and another layer will not do
    await (await createMillrace({ store: "memory:", log: {}, operations: [convert, free], services: Layer.empty })).close()
  })
})

describe("layers in place of the defaults", () => {
  const stores = () => Layer.fresh(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer))

  it("are stores, the master key and the blobs", async () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-options-"))
    const erasures = join(folder, "erasures.jsonl")
    const [store, masterKey] = [stores(), MasterKey.layer("5a".repeat(32))]
    const host = await createMillrace({ store, masterKey, blobs: MemoryBlobStore.layer, erasures, log: {}, operations: [write] })
    const account = await host.accounts.open({ id: "user-7", email: "ada@example.com", verified: true })
    const { data } = await host.run(write, { text: "A mill." }, { account })
    expect(await host.jobs.wait(write, data.id, { account, timeout: 10_000 })).toMatchObject({ status: "succeeded", result: { bytes: 7 } })
    expect(await new Response((await host.jobs.file(write, data.id, { account })).stream).text()).toBe("A mill.")
    await expect(host.backup({ to: folder })).rejects.toThrow("This is for a store in files, and the store was given as a layer")
    await host.accounts.erase("user-7")
    expect(existsSync(erasures)).toBe(true)
    await host.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it("need a master key beside stores, and a register for an erasure; log and state may be apart", async () => {
    const [store, state] = [Layer.fresh(MemoryEventStore.layer), Layer.fresh(MemoryStateStore.layer)]
    await expect(createMillrace({ store, state, log: {}, operations: [free] })).rejects.toThrow("need the option masterKey")
    const misplaced = createMillrace({ store: "memory:", state, masterKey: "5a".repeat(32), log: {}, operations: [free] })
    await expect(misplaced).rejects.toThrow("The option state is for a log on KurrentDB")
    // @ts-expect-error a log needs a state beside it
    const alone: Parameters<typeof createMillrace>[0] = { store, operations: [] }
    expect(alone).toBeDefined()
    const host = await createMillrace({ store, state, masterKey: "5a".repeat(32), log: {}, operations: [free] })
    await host.accounts.open({ id: "user-7" })
    await expect(host.accounts.erase("user-7")).rejects.toThrow("by the option erasures")
    await host.close()
  })
})

describe("the settings of the server", () => {
  it("hold for a host: credits of a sign-up, the circuit, web pages", async () => {
    let runs = 0
    const down = operation("test.down", {
      ...{ summary: "Fail", price: 1, success: Schema.Struct({}) },
      route: { method: "GET", path: "/down" },
      run: (): {} => {
        runs++
        throw new UpstreamUnavailable("it is down")
      }
    })
    const host = await createMillrace({
      ...{ store: "memory:", log: {}, operations: [down], signUpCredits: 7.5, breaker: { failures: 1, openFor: 60_000 } },
      corsOrigins: ["https://app.example.com"]
    })
    const account = await host.accounts.open({ email: "ada@example.com", verified: true })
    expect((await host.balance(account)).available).toBe(7.5)
    for (const _ of [1, 2, 3]) await expect(host.run(down, {}, { account })).rejects.toMatchObject({ code: "upstream_unavailable" })
    expect(runs).toBe(1)
    const asked = (origin: string) => host.fetch(new Request("http://host/api/v1/down", { headers: { origin } }))
    expect((await asked("https://app.example.com")).headers.get("access-control-allow-origin")).toBe("https://app.example.com")
    expect((await asked("https://other.example.com")).headers.get("access-control-allow-origin")).not.toBe("https://other.example.com")
    await host.close()
  })

  it("bound how long a host waits for running calls when it closes", async () => {
    let started = () => {}
    const isRunning = new Promise<void>((resolve) => {
      started = resolve
    })
    const reasons: Array<unknown> = []
    const wait = operation("test.wait", {
      ...{ summary: "Wait", price: 1, success: Schema.Struct({}) },
      route: { method: "GET", path: "/wait" },
      run: (_, { signal }) =>
        new Promise<{}>((_, reject) => {
          signal.addEventListener("abort", () => {
            reasons.push(signal.aborted)
            reject(signal.reason)
          })
          started()
        })
    })
    const host = await createMillrace({ store: "memory:", log: {}, grace: 0, operations: [wait] })
    const account = await host.accounts.open({ email: "ada@example.com", verified: true })
    const { key } = await host.keys.issue(account)
    const answer = host.fetch(new Request("http://host/api/v1/wait", { headers: { authorization: `Bearer ${key}` } }))
    await isRunning
    await host.close()
    expect([(await answer).status, reasons]).toEqual([503, [true]])
  })

  it("are refused with a sentence", async () => {
    const create = (more: object) => createMillrace({ store: "memory:", log: {}, operations: [], ...more })
    await expect(create({ signUpCredits: -1 })).rejects.toThrow("signUpCredits is -1: give a number of credits")
    await expect(create({ money: { value: "2 euros" } })).rejects.toThrow('money.value is "2 euros": give a decimal above 0 and a currency')
    await expect(create({ money: { credit: "1" } })).rejects.toThrow('money.credit is "1"')
  })
})
