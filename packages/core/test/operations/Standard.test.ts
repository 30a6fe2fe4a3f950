/** Which standard operations have a circuit breaker: those that ask a provider, and no others. */
import { expect, test } from "vitest"
import { Standard } from "../../src/index.ts"

/** A read of the account that waits for a store must not make the next ones fail at once, as if the provider of its area were away. */
test("an operation has a circuit exactly if it asks a provider", () => {
  const guarded = Standard.operations.filter((operation) => operation.local !== true).map(({ key }) => key)
  expect(guarded.toSorted()).toEqual([
    "bin.lookup",
    "dns.resolve",
    "email.validate",
    "email.validateBatch",
    "email.validationJob",
    "grammar.check",
    "image.edit",
    "image.generate",
    "speech.synthesize",
    "speech.voices",
    "topics.list"
  ])
})
