/** Which standard operations have a circuit breaker: those that ask a provider, and no others. */
import { expect, test } from "vitest"
import { Standard } from "../../src/index.ts"

/** A read of the account that waits for a store must not make the next ones fail at once, as if the provider of its area were away. */
test("an operation has a circuit exactly if it asks a provider", () => {
  const guarded = Standard.operations.filter((operation) => operation.local !== true).map(({ key }) => key)
  expect(guarded.toSorted()).toEqual([
    "bin.lookup",
    "codeHost.activity",
    "codeHost.repository",
    "codeHost.searchRepositories",
    "codeHost.user",
    "dns.resolve",
    "email.validate",
    "email.validateBatch",
    "email.validationJob",
    "grammar.check",
    "image.edit",
    "image.generate",
    "leads.search",
    "speech.synthesize",
    "speech.voices",
    "storeCatalog.read",
    "topics.list",
    "video.about",
    "video.channelVideos",
    "video.comments",
    "video.details",
    "video.download",
    "video.outliers",
    "video.playlist",
    "video.search",
    "video.stats",
    "video.tags"
  ])
})
