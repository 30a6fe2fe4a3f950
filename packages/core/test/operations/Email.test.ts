import { Effect, Exit, Result, Schema, Struct } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { inputOf } from "../../../testing/src/Arbitraries.ts"
import * as Email from "../../src/operations/Email.ts"
import { UpstreamUnavailable } from "../../src/work/OperationError.ts"
import { check, checkAsync } from "../vault/Property.ts"

const CALLER = { accountId: "acc_1", requestId: "req_1", reservationId: "res_1" }

const reportOn = (email: string, consensus: boolean): Email.EmailReport => ({
  email,
  valid: email.includes("@"),
  disposable: consensus,
  domain: "example.com",
  syntax_valid: true,
  mx_records: true,
  score: email.length / 1000
})

const failure = new UpstreamUnavailable({ upstream: "dns", reason: "SERVFAIL" })

/** An address with an exclamation mark cannot be checked. */
const provide = Effect.provideService(Email.EmailValidator, {
  validate: ({ email, consensus }) => Effect.succeed(reportOn(email, consensus)),
  validateAll: ({ emails, consensus }) =>
    Effect.succeed(emails.map((email) => (email.includes("!") ? Result.fail(failure) : Result.succeed(reportOn(email, consensus)))))
})

const provideNone = Effect.provideService(Email.EmailValidator, {
  validate: () => Effect.fail(failure),
  validateAll: ({ emails }) => Effect.succeed(emails.map(() => Result.fail(failure)))
})

const one = Schema.is(Schema.Struct(Email.validate.route.body))
const batch = Schema.is(Schema.Struct(Email.validateBatch.route.body))

describe("email.validate", () => {
  test("accepts 1 to 255 characters, whether or not they are an address", () => {
    for (const email of ["x", "ada@example.com", "not an address", "x".repeat(255)]) expect(one({ email })).toBe(true)
    for (const input of [{ email: "" }, { email: "x".repeat(256) }, { email: null }, {}, { email: "x", consensus: "yes" }]) {
      expect(one(input)).toBe(false)
    }
  })

  test("returns the report, and uses consensus only if requested", () =>
    checkAsync(
      fc.asyncProperty(inputOf(Email.validate), async (input) => {
        expect(Email.validate.quantity(input)).toBe(1)
        const { data } = await Effect.runPromise(provide(Email.validate.run(input, CALLER)))
        expect(data).toEqual(reportOn(input.email, input.consensus ?? false))
      })
    ))
})

describe("email.validateBatch", () => {
  test("accepts 1 to 50 addresses of 1 to 255 characters", () => {
    for (const count of [1, 50]) expect(batch({ emails: Array(count).fill("x".repeat(255)) })).toBe(true)
    for (const emails of [[], Array(51).fill("x"), [""], ["x", "x".repeat(256)], ["x", 1], "x"]) expect(batch({ emails })).toBe(false)
  })

  test("costs 0.6 credits for each address, repeated ones included", () => {
    check(
      fc.property(inputOf(Email.validateBatch), ({ emails }) => {
        expect(Email.validateBatch.quantity({ emails })).toBe(emails.length)
      })
    )
    expect(Email.validateBatch.quantity({ emails: ["ada@example.com", "ada@example.com"] })).toBe(2)
    expect(Email.validateBatch.price).toBe(0.6)
  })

  test("returns four fields for each address in order, without consensus, and charges the checked ones", () =>
    checkAsync(
      fc.asyncProperty(inputOf(Email.validateBatch), async ({ emails }) => {
        const exit = await Effect.runPromiseExit(provide(Email.validateBatch.run({ emails }, CALLER)))
        const unchecked = emails.filter((email) => email.includes("!"))
        const checked = emails.filter((email) => !email.includes("!"))
        if (checked.length === 0) {
          expect(exit).toEqual(Exit.fail(failure))
          return
        }
        const results = checked.map((email) => Struct.pick(reportOn(email, false), ["email", "valid", "disposable", "score"]))
        expect(exit).toEqual(Exit.succeed({ data: { total: emails.length, results, unchecked }, quantity: checked.length }))
      })
    ))
})

test("both operations fail if no address can be checked", async () => {
  const alone = Email.validate.run({ email: "ada@example.com" }, CALLER)
  const together = Email.validateBatch.run({ emails: ["ada@example.com"] }, CALLER)
  expect(await Effect.runPromise(Effect.flip(provideNone(alone)))).toBe(failure)
  expect(await Effect.runPromise(Effect.flip(provideNone(together)))).toBe(failure)
})

test("the examples match the operations' schemas", () => {
  expect(one(Email.validate.example?.input)).toBe(true)
  expect(batch(Email.validateBatch.example?.input)).toBe(true)
  expect(Schema.is(Email.EmailReport)(Email.validate.example?.data)).toBe(true)
  expect(Schema.is(Email.EmailBatch)(Email.validateBatch.example?.data)).toBe(true)
})
