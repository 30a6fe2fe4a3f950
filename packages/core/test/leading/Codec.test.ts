import { Aggregate, EventStore, StateStore } from "@millrace/event-sourcing"
import { Cause, Effect, Exit, Schema } from "effect"
import { describe, expect, test } from "vitest"
import { CostExceedsLimit, OutcomeUnknown, type Reply } from "../../src/billing/charge/Call.ts"
import * as Credits from "../../src/Credits.ts"
import { endedOf, exitOf, forwardable } from "../../src/leading/Codec.ts"
import { InFlight, InsufficientCredits } from "../../src/ledger/Refusals.ts"
import * as Operation from "../../src/work/Operation.ts"
import { InvalidInput, NotFound, UpstreamUnavailable } from "../../src/work/OperationError.ts"

/** What a host gets of what another one sent. */
const returned = (exit: Exit.Exit<Reply, unknown>) => exitOf(JSON.parse(JSON.stringify(endedOf(exit))))

describe("the end of a call", () => {
  test("comes back as it was: a reply", () => {
    const reply: Reply = {
      requestId: "req_1",
      data: '{"text":"\\u2028 ü"}',
      billed: { charged: Credits.of(500), balance: Credits.of(1_500), trialRemaining: 3 },
      replayed: true,
      retryAfter: 3,
      page: { number: 1, size: 10, total: 11 },
      cache: "hit",
      job: { id: "job_1" }
    }
    expect(returned(Exit.succeed(reply))).toEqual(Exit.succeed(reply))
  })

  test.each([
    new InvalidInput({ field: "text", message: "is too long" }),
    new NotFound({ resource: "bin" }),
    new UpstreamUnavailable({ upstream: "dns", reason: "no answer", isolated: true, retryAfter: 3 }),
    new InsufficientCredits({ required: Credits.of(3), available: Credits.of(1), shortfall: Credits.of(2), affordableUnits: 0 }),
    new InFlight({ reservationId: "res_1" }),
    new CostExceedsLimit({ cost: Credits.of(2_000), limit: Credits.of(1_000) }),
    new OutcomeUnknown(),
    new Aggregate.Busy({ stream: "account-1" }),
    new EventStore.StoreUnavailable({ reason: "the clock is wrong", why: "clock" }),
    new StateStore.StateUnavailable({ reason: "gone" })
  ])("comes back as it was: $_tag", (error) => {
    const exit = returned(Exit.fail(error))
    expect(exit).toEqual(Exit.fail(error))
    expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toBeInstanceOf(error.constructor)
  })

  test("is a defect with its text, if it was one", () => {
    const exit = returned(Exit.die(new Error("a bug")))
    expect(Exit.isFailure(exit) && Cause.hasDies(exit.cause) && String(Cause.squash(exit.cause))).toContain("a bug")
  })

  test("is unknown, if the host was interrupted or speaks of an error of a later release", () => {
    expect(returned(Exit.interrupt())).toEqual(Exit.fail(new OutcomeUnknown()))
    expect(exitOf({ error: { _tag: "OfALaterRelease" } })).toEqual(Exit.fail(new OutcomeUnknown()))
  })
})

describe("an operation", () => {
  const make = (options: { readonly price?: number }) =>
    Operation.make("test.dates", {
      summary: "Dates",
      route: { method: "POST", path: "/dates", body: { at: Schema.Date, any: Schema.Unknown } },
      success: Schema.Struct({}),
      run: () => Effect.succeed({ data: {} }),
      ...options
    })

  test("has its input at another host as here, or is not forwarded", () => {
    const known = forwardable(make({ price: 1 }))
    const there = (input: object) => {
      const json = known?.encode(input)
      return json?._tag === "Some" ? known?.decode(JSON.parse(JSON.stringify(json.value))) : json
    }
    const input = { at: new Date(7), any: { deep: [1, null, "x"] } }
    expect(there(input)).toMatchObject({ _tag: "Some", value: input })
    expect(there({ at: new Date(7), any: new Map() })).toMatchObject({ _tag: "None" })
  })

  test("that is free stays here", () => {
    expect(forwardable(make({ price: 0 }))).toBeUndefined()
  })
})
