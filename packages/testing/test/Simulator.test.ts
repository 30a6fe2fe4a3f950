/**
 * The simulator over eighty seeds, and over one seed with a planned fault at every append and every write. `MILLRACE_SOAK` multiplies the
 * number of seeds; `MILLRACE_SEED` is the first one.
 */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Bin, Email, EmailJobs, Grammar, Image, ImageJobs, Operation } from "@millrace/core"
import { Effect, Layer, Result, Schema } from "effect"
import { beforeAll, describe, expect, test } from "vitest"
import type { Faults } from "../src/Simulator.ts"
import * as Simulator from "../src/Simulator.ts"

const SOAK = Math.max(1, Number(process.env["MILLRACE_SOAK"] ?? 1))
const FIRST = Number(process.env["MILLRACE_SEED"] ?? 1)
const SEEDS = 80 * SOAK
const CHUNKS = 4
/** Only calls of operations, as in the first simulations. */
const CALLS_ALONE = { opens: 0, webhooks: 0, inboxes: 0, codes: 0, proxies: 0, payments: 0, subscriptions: 0, people: 0 }

const simulate = (seed: number, options: Omit<Simulator.Options<never>, "seed" | "workload"> = {}) =>
  Effect.runPromise(Simulator.run({ ...options, seed }))

describe("the simulator finds no violation under all faults", () => {
  const stats: Record<string, number> = {}

  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    const first = FIRST + (chunk * SEEDS) / CHUNKS
    const last = first + SEEDS / CHUNKS - 1
    test(
      `seeds ${first} to ${last}`,
      async () => {
        for (let seed = first; seed <= last; seed++)
          for (const [what, times] of Object.entries((await simulate(seed)).stats)) stats[what] = (stats[what] ?? 0) + times
      },
      120_000 * SOAK
    )
  }

  const OF_PAYMENTS = [
    ...["Requested", "Begun", "Authorized", "Captured", "Failed", "Refunded", "RefundFailed", "Disputed", "DisputeWon", "DisputeLost"].map(
      (event) => `Payment${event}`
    ),
    ...["InvoiceIssued", "CreditNoteIssued"]
  ]

  // In other runs few payments live long enough to be disputed; which seeds have all kinds of events changes with the code
  test("nor where most steps concern payments", async () => {
    const isMet = () => OF_PAYMENTS.every((event) => event in stats)
    for (let seed = FIRST; seed < FIRST + 6 * SOAK || (!isMet() && seed < FIRST + 20 * SOAK); seed++) {
      const { stats: met } = await simulate(seed, { steps: 60, payments: 0.8 })
      for (const [what, times] of Object.entries(met)) stats[what] = (stats[what] ?? 0) + times
    }
  }, 120_000)

  // Without other faults every lease and deadline must be kept
  test("nor with faults of upstreams alone", async () => {
    for (let seed = FIRST; seed < FIRST + 8 * SOAK; seed++) await simulate(seed, { faults: { ...Simulator.none, upstreams: 0.8 } })
  }, 120_000)

  // A simulation that never meets these would prove nothing
  test("and meets every kind of answer and event", () => {
    const met = Object.keys(stats)
    expect(met).toEqual(
      expect.arrayContaining(
        [
          ...["done", "replayed", "InFlight", "KeyReused", "OutcomeUnknown", "ResultWithheld", "hung", "Disconnected", "died"],
          ...["StoreUnavailable", "StateUnavailable", "AppendInDoubt", "Busy", "CostExceedsLimit", "InsufficientCredits"],
          ...["AccountSuspended", "AccountInDebt", "InvalidInput", "NotFound", "UpstreamUnavailable", "UpstreamNotConfigured"]
        ].map((told) => `told ${told}`)
      )
    )
    expect(met).toEqual(
      expect.arrayContaining(["LotExpired", "Refunded", "CreditsClawedBack", "ClawbackReversed", "DebtRepaid", "AccountReinstated"])
    )
    expect(met).toEqual(expect.arrayContaining(["opens: ok", "opens: ReferenceTaken", "opens: EmailTaken", "opens: StoreUnavailable"]))
    expect(stats["promises"]).toBeGreaterThan(0)
  })

  test("and every kind of event of webhooks", () => {
    const events = ["Added", "Changed", "SecretRotated", "Disabled", "Enabled", "Removed"].map((event) => `Webhook${event}`)
    expect(Object.keys(stats)).toEqual(expect.arrayContaining(events))
    for (const what of ["webhook accepted", "webhook not accepted"])
      expect([what, stats[what] ?? 0]).toEqual([what, expect.toSatisfy((times: number) => times > 20)])
  })

  test("and every kind of event of inboxes and of waits for codes", () => {
    const events = ["Created", "Rotated", "Deleted", "Expired"].map((event) => `Inbox${event}`)
    const waits = ["SmsReceived", "CodeFound", "WaitTimedOut", "WaitAbandoned"]
    expect(Object.keys(stats)).toEqual(expect.arrayContaining([...events, "AddressClaimed", "MessageReceived", ...waits]))
    for (const what of ["mail taken", "mail UnknownAddress", "mail ReceiverUnavailable", "text taken", "text StoreUnavailable"])
      expect([what, stats[what] ?? 0]).toEqual([what, expect.toSatisfy((times: number) => times > 3)])
  })

  test("and every kind of event of proxy sessions", () => {
    const events = ["ProxySessionOpened", "ProxyTrafficCounted", "ProxySessionEnded", "ProxySessionExpired"]
    expect(Object.keys(stats)).toEqual(expect.arrayContaining(events))
    for (const what of ["client admitted", "client refused", "client StoreUnavailable", "count open", "count ended"])
      expect([what, stats[what] ?? 0]).toEqual([what, expect.toSatisfy((times: number) => times > 3)])
  })

  test("and every kind of event of payments", () => {
    expect(Object.keys(stats)).toEqual(expect.arrayContaining(OF_PAYMENTS))
  })

  test("and every kind of event and end of jobs", () => {
    const met = Object.keys(stats)
    expect(met).toEqual(
      expect.arrayContaining([
        ...["Accepted", "Refused", "Started", "LeaseExtended", "Progressed", "Released", "Succeeded", "Failed", "Cancelled", "Purged"].map(
          (event) => `Job${event}`
        ),
        ...["InvalidInput", "NotFound", "UpstreamUnavailable", "UpstreamNotConfigured", "Defect", "Abandoned", "TooLate"].map(
          (failure) => `job failed: ${failure}`
        ),
        ...["waits: ended", "waits: open", "waits: NotFound", "fetches: file", "fetches: NotFound"]
      ])
    )
    for (const rare of ["job taken over", "job handed back", "job delivered, and cancelled", "job delivered twice"])
      expect([rare, stats[rare] ?? 0]).toEqual([rare, expect.toSatisfy((times: number) => times > 3)])
  })
})

describe("finds no violation of trials", () => {
  const stats: Record<string, number> = {}

  test(
    "under all faults, while administrators grant credits to some of the accounts",
    async () => {
      for (let seed = FIRST; seed < FIRST + 24 * SOAK; seed++) {
        const run = await simulate(seed, { trials: 3, webhooks: 0, inboxes: 0, codes: 0 })
        for (const [what, times] of Object.entries(run.stats)) stats[what] = (stats[what] ?? 0) + times
      }
    },
    120_000 * SOAK
  )

  test("and meets every kind of event of trials", () => {
    for (const event of ["TrialReserved", "TrialUsed", "TrialReleased"])
      expect([event, stats[event] ?? 0]).toEqual([event, expect.toSatisfy((times: number) => times > 10)])
  })
})

describe("finds no violation under seeds that found a bug", () => {
  const FOUND = {
    1: "a host that had just started answered that a job had ended, because it had not read the job yet",
    6: "a call under the key of a cancelled job ran, and took the key",
    22: "a job whose cancellation was interrupted after its key was destroyed was unavailable instead of gone",
    34: "a reply replaced another that was still open, and callers were answered that theirs was gone"
  }

  /** They found it before hosts opened accounts by ids of their own, delivered webhooks, had inboxes, numbers and nodes, and took payments. */
  for (const [seed, what] of Object.entries(FOUND)) test(`seed ${seed}: ${what}`, () => simulate(Number(seed), CALLS_ALONE))
})

describe("finds no violation of webhooks under seeds that found a bug", () => {
  const FOUND = {
    65: "a webhook that was added while the first host began to deliver missed what happened meanwhile",
    132: "a notice was dropped, because the host knew of its webhook only what was true before"
  }

  for (const [seed, what] of Object.entries(FOUND))
    test(`seed ${seed}: ${what}`, async () => {
      const { stats } = await simulate(Number(seed), { ...CALLS_ALONE, opens: undefined, webhooks: 0.5 })
      expect(stats["webhook accepted"]).toBeGreaterThan(10)
    })
})

describe("the same seed", () => {
  const SEED = 7

  test("gives the same trace and the same log each time", async () => {
    const [one, other] = [await simulate(SEED), await simulate(SEED)]
    expect(other.trace).toEqual(one.trace)
    expect(other.events).toEqual(one.events)
    expect(other.hash).toBe(one.hash)
    expect((await simulate(SEED + 1)).hash).not.toBe(one.hash)
  })

  test("gives the same hash in another process", async () => {
    const program = `
      import { Effect } from "effect"
      import * as Simulator from ${JSON.stringify(new URL("../src/Simulator.ts", import.meta.url).href)}
      const { hash } = await Effect.runPromise(Simulator.run({ seed: ${SEED} }))
      process.stdout.write(hash)
    `
    const cwd = fileURLToPath(new URL("..", import.meta.url))
    const node = promisify(execFile)(process.execPath, ["--conditions=@millrace/source", "--input-type=module", "--eval", program], { cwd })
    expect((await node).stdout).toBe((await simulate(SEED)).hash)
  })
})

describe("a workload of a host's own operations", () => {
  const workload: Simulator.Workload<typeof Bin.lookup | typeof Grammar.check> = {
    offers: [
      { operation: Bin.lookup, input: (random) => ({ bin: `${400_000 + random.below(99)}` }), price: 500 },
      { operation: Grammar.check, input: (random) => ({ text: "They is here.", language: random.pick(["en", "tlh"]) }), price: 900 }
    ],
    services: Layer.mergeAll(
      Layer.succeed(Bin.BinDirectory, {
        lookup: (bin) => Effect.succeed({ bin, scheme: "visa", type: null, brand: null, country: null, bank: null })
      }),
      Layer.succeed(Grammar.GrammarChecker, {
        supports: (language) => language === "en",
        check: () => Effect.delay(Effect.succeed({ matches: [] }), 100)
      })
    )
  }

  test("is called with its services and billed at its prices", async () => {
    const { calls, events } = await Effect.runPromise(Simulator.run({ seed: 1, steps: 60, workload, faults: Simulator.none }))
    const answers = (key: string) =>
      new Set(calls.flatMap(({ operation, answer }) => (operation === key ? [answer.split(/[ ,]/u, 1)[0]] : [])))
    expect(answers("bin.lookup")).toContain("done")
    expect(answers("grammar.check")).toContain("InvalidInput")
    const first = events.find(({ type, data }) => type === "CreditReserved" && data.includes("bin.lookup"))
    expect(first?.data).toContain(`"amount":500`)
  })

  test("passes under all faults", async () => {
    for (let seed = 1; seed <= 10; seed++) await Effect.runPromise(Simulator.run({ seed, workload }))
  })

  test("may have jobs with checkpoints and files", async () => {
    const email = (random: { readonly below: (n: number) => number }) => `someone${random.below(999)}@d${random.below(4)}.example`
    const jobs: Simulator.Workload<typeof EmailJobs.validationJob | typeof ImageJobs.generate> = {
      offers: [
        {
          operation: EmailJobs.validationJob,
          input: (random) => ({ emails: Array.from({ length: 1 + random.below(120) }, () => email(random)) }),
          price: 10
        },
        { operation: ImageJobs.generate, input: (random) => ({ prompt: "A mill", samples: 1 + random.below(3) }), price: 4_000 }
      ],
      services: Layer.mergeAll(
        Layer.succeed(Email.EmailValidator, {
          validate: () => Effect.die("not asked for"),
          validateAll: ({ emails }) =>
            Effect.delay(
              Effect.succeed(
                emails.map((email) => {
                  const domain = email.split("@")[1] ?? ""
                  return Result.succeed({ email, domain, valid: true, disposable: false, syntax_valid: true, mx_records: true, score: 0.9 })
                })
              ),
              2_000
            )
        }),
        Layer.succeed(Image.ImageGenerator, {
          configured: Effect.void,
          generate: ({ height, idempotencyKey, samples, width }) =>
            Effect.delay(
              Effect.succeed(
                Array.from({ length: samples }, (_, i) => ({
                  bytes: Buffer.from(`${idempotencyKey} ${i}`),
                  contentType: "image/png" as const,
                  ...{ width, height }
                }))
              ),
              9_000
            ),
          edit: () => Effect.die("not asked for")
        }),
        Image.Translator.unconfigured
      )
    }
    let checkpoints = 0
    for (let seed = 1; seed <= 8; seed++) {
      const { stats } = await Effect.runPromise(Simulator.run({ seed, workload: jobs }))
      checkpoints += stats["JobProgressed"] ?? 0
    }
    expect(checkpoints).toBeGreaterThan(8)
  }, 120_000)
})

describe("a host whose clock is stepped by up to a quarter of an hour, forwards and back", () => {
  // Seeds 1, 7 and 10 found calls that looked up their key again and again until the clock had caught up with the account
  test("answers calls with keys without delay", async () => {
    const faults = { ...Simulator.none, clocks: 0.3, skew: 900_000 }
    for (let seed = 1; seed <= 12; seed++)
      await Effect.runPromise(Simulator.run({ seed, hosts: 1, keys: 1, faults, workload: Simulator.standard({ jobs: false }) }))
  }, 120_000)
})

describe("a simulation that fails", () => {
  const complaining = Operation.make("complaining.one", {
    summary: "Logs a warning",
    route: { method: "POST", path: "/complaining", body: { n: Schema.Int } },
    success: Schema.Struct({ n: Schema.Int }),
    run: ({ n }) => Effect.as(Effect.logWarning("something is wrong"), { data: { n } })
  })
  const workload: Simulator.Workload<typeof complaining> = {
    offers: [{ operation: complaining, input: (random) => ({ n: random.below(3) }), price: 1_000 }],
    services: Layer.empty
  }

  test("names the violations, the trace around the first one, and the test that repeats it", async () => {
    const run = Simulator.run({ seed: 99, steps: 20, workload, faults: { ...Simulator.none, late: "charge" } })
    const { message, seed, trace, violations } = await Effect.runPromise(Effect.flip(run))
    expect(seed).toBe(99)
    expect(violations[0]).toContain("logs: something is wrong")
    expect(message).toContain("Simulation of seed 99")
    expect(message).toContain(violations[0])
    expect(message).toContain(`> ${trace.find((line) => line.includes(" checker: "))}`)
    expect(message).toContain(`Simulator.run({ seed: 99, steps: 20, faults: { ...Simulator.none, late: "charge" }, workload })`)
  })
})

describe("jobs at two hosts, with one planned fault", () => {
  /** Jobs and other calls at two hosts: jobs succeed, fail, and are cancelled. Which seeds make such a day changes with the code. */
  const SEED = 330
  const KINDS = ["JobAccepted", "JobLeaseExtended", "JobProgressed", "JobSucceeded", "JobFailed", "JobCancelled"]
  let seed = SEED
  const day = (faults: Partial<Faults>) =>
    simulate(seed, {
      steps: 17,
      hosts: 2,
      ...CALLS_ALONE,
      faults: { ...Simulator.none, upstreams: 0.25, hangUps: 0.05, leaps: 0.03, ...faults }
    })
  /** The appends of the day on which nothing fails by plan. */
  const appends = async (): Promise<ReadonlyArray<string>> => {
    const { trace } = await day({})
    const [begins, ends] = [trace.findIndex((line) => line.includes("h0.0: is up")), trace.findIndex((line) => line.includes("faults end"))]
    return trace.slice(begins, ends).filter((line) => line.includes(" log: "))
  }

  const isDay = (made: ReadonlyArray<string>) => made.length > 50 && KINDS.every((event) => made.some((append) => append.includes(event)))

  beforeAll(async () => {
    while (!isDay(await appends()) && seed < SEED + 40) seed++
  }, 120_000)

  test("are more than 50 appends long, of every kind of event", async () => {
    expect(isDay(await appends())).toBe(true)
  })

  /** Every other append and write; all of them with `MILLRACE_SOAK`. */
  const EVERY = SOAK > 1 ? 1 : 2
  /** One of them for each place, in turn; all of them with `MILLRACE_SOAK`. */
  const someOf = <A>(all: ReadonlyArray<A>, place: number) => (SOAK > 1 ? all : all.slice(place % all.length).slice(0, 1))

  test("end correctly when every N-th append fails, is not confirmed, or arrives late", async () => {
    const { length } = await appends()
    for (let n = 1; n <= length; n += EVERY)
      for (const fault of someOf(["before", "after", "unanswered"] as const, Math.floor(n / EVERY))) {
        // A repeated append counts again, so there are more appends than in the log
        const failing = Array.from({ length: Math.ceil((8 * length) / n) }, (_, i) => [(i + 1) * n, fault] as const)
        await day({ appends: Object.fromEntries(failing) })
      }
  }, 240_000)

  test("are free when they were accepted without a key and their outcome is unknown, at each write of an outage", async () => {
    let accepted = 0
    for (let write = EVERY, met = true; met; write += EVERY) {
      const { calls, events, trace } = await simulate(260, {
        ...{ steps: 17, hosts: 2, keys: 0, ...CALLS_ALONE },
        faults: { ...Simulator.none, outage: { write, millis: 60_000 } }
      })
      met = trace.some((line) => line.includes("has no event store"))
      const unknown = new Set(calls.flatMap(({ answer, requestId }) => (answer === "OutcomeUnknown" ? [requestId] : [])))
      for (const { data, type } of events) if (type === "JobAccepted" && unknown.has(JSON.parse(data).requestId)) accepted++
    }
    expect(accepted).toBeGreaterThan(0)
  }, 240_000)

  test("end correctly when a host crashes at any of its writes", async () => {
    let writes = 0
    for (let met = true; met; ) {
      writes += EVERY
      met = false
      for (const stage of someOf(["before", "sent", "arrived"] as const, writes / EVERY)) {
        const { trace } = await day({ crash: { write: writes, stage } })
        met ||= trace.some((line) => line.includes("crashes by plan"))
      }
    }
    expect(writes).toBeGreaterThan((await appends()).length)
  }, 240_000)
})
