import { Grammar, UpstreamUnavailable } from "@millrace/core"
import { LanguageToolGrammarChecker } from "@millrace/upstreams"
import { Effect, Fiber, Redacted, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { faults, hangs, json, nobody, serve } from "../shared/LocalService.ts"

const TEXT = "😀 This are an test."

/** A reply in the shape of the published API, version 1, with all of its fields. */
const published = {
  software: {
    name: "LanguageTool",
    version: "6.6",
    buildDate: "2025-03-27 13:37:00 +0000",
    apiVersion: 1,
    premium: false,
    premiumHint: "",
    status: ""
  },
  warnings: { incompleteResults: false },
  language: {
    name: "English (GB)",
    code: "en-GB",
    detectedLanguage: { name: "English (US)", code: "en-US", confidence: 0.9, source: "ngram" }
  },
  matches: [
    {
      message: "Use “a” instead of ‘an’ if the following word doesn’t start with a vowel sound.",
      shortMessage: "Wrong article",
      replacements: [{ value: "a" }],
      offset: 12,
      length: 2,
      context: { text: TEXT, offset: 12, length: 2 },
      sentence: TEXT,
      type: { typeName: "Other" },
      rule: {
        id: "EN_A_VS_AN",
        description: "Use of 'a' vs. 'an'",
        issueType: "misspelling",
        category: { id: "MISC", name: "Miscellaneous" }
      },
      ignoreForIncompleteSentence: false,
      contextForSureMatch: 1
    },
    {
      message: "The verb form ‘are’ does not seem to match the subject ‘This’.",
      shortMessage: "",
      replacements: [{ value: "is", shortDescription: "singular" }, { value: "was" }],
      offset: 8,
      length: 3,
      context: { text: TEXT, offset: 8, length: 3 },
      sentence: TEXT,
      rule: {
        id: "THIS_NNS_VB",
        subId: "3",
        sourceFile: "grammar.xml",
        description: "agreement",
        issueType: "grammar",
        urls: [{ value: "https://languagetool.org/insights/post/" }],
        category: { id: "GRAMMAR", name: "Grammar" }
      }
    }
  ],
  sentenceRanges: [[0, 20]]
}

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const check = (options: LanguageToolGrammarChecker.Options, text = TEXT, language = "en-gb") =>
  Grammar.GrammarChecker.use((checker) => checker.check({ accountId: "acc_1", text, language })).pipe(
    Effect.provide(LanguageToolGrammarChecker.layer(options))
  )

const supports = (languages?: ReadonlyArray<string>) =>
  Grammar.GrammarChecker.use((checker) => Effect.succeed(checker.supports)).pipe(
    Effect.provide(
      LanguageToolGrammarChecker.layer({ baseUrl: new URL("http://localhost"), ...(languages === undefined ? {} : { languages }) })
    ),
    Effect.runSync
  )

describe("a LanguageTool server", () => {
  test("is asked by its API, and its matches are returned by offset", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(published))
        expect(yield* check({ baseUrl: service.url })).toEqual({
          matches: [
            {
              message: "The verb form ‘are’ does not seem to match the subject ‘This’.",
              offset: 8,
              length: 3,
              replacements: ["is", "was"],
              rule: "THIS_NNS_VB"
            },
            {
              message: "Use “a” instead of ‘an’ if the following word doesn’t start with a vowel sound.",
              offset: 12,
              length: 2,
              replacements: ["a"],
              rule: "EN_A_VS_AN"
            }
          ]
        })
        const request = yield* service.received
        expect(request).toMatchObject({ method: "POST", path: "/v2/check" })
        expect(request.headers["content-type"]).toMatch(/^application\/x-www-form-urlencoded/u)
        expect(request.headers).not.toHaveProperty("traceparent")
        expect(Object.fromEntries(new URLSearchParams(request.body))).toEqual({ text: TEXT, language: "en-GB" })
      })
    ))

  test.each(["/proxy/languagetool", "/proxy/languagetool/"])("may be below a path: %s", (path) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json({ matches: [] }))
        expect(yield* check({ baseUrl: new URL(path, service.url) })).toEqual({ matches: [] })
        expect((yield* service.received).path).toBe("/proxy/languagetool/v2/check")
      })
    )
  )

  test("gets the credentials, if there are any", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(published))
        yield* check({ baseUrl: service.url, credentials: { username: "me@example.com", apiKey: Redacted.make("secret") } })
        const { body } = yield* service.received
        expect(Object.fromEntries(new URLSearchParams(body))).toMatchObject({ username: "me@example.com", apiKey: "secret" })
      })
    ))

  test("gets a text of 50,000 characters unchanged", () =>
    run(
      Effect.gen(function* () {
        const text = "100% = ½ + ½ & 😀\r\n".repeat(3000).slice(0, 50_000)
        const service = yield* serve(json({ matches: [] }))
        yield* check({ baseUrl: service.url }, text)
        expect(new URLSearchParams((yield* service.received).body).get("text")).toBe(text)
      })
    ))

  test.each([
    ...faults(published, 65_536),
    ["a match outside of the text", json({ matches: [{ ...published.matches[0], offset: 19 }] })] as const
  ])("is unavailable if it answers with %s", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        expect(yield* Effect.flip(check({ baseUrl: url, byteLimit: 65_536 }))).toBeInstanceOf(UpstreamUnavailable)
      })
    )
  )

  test.each([
    ["a negative offset", { ...published.matches[0], offset: -1 }],
    ["half an offset", { ...published.matches[0], offset: 0.5 }],
    ["no rule", { ...published.matches[0], rule: null }],
    ["replacements that are none", { ...published.matches[0], replacements: ["a"] }]
  ])("is unavailable if it gives a match with %s, and its words reach no log", (_, match) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json({ matches: [{ ...match, message: TEXT, sentence: TEXT }] }))
        const error = yield* Effect.flip(check({ baseUrl: url }))
        expect(error.reason).toMatch(/^its reply is malformed at matches\.0\./u)
        expect(error.reason).not.toContain(TEXT)
      })
    )
  )

  test("is unavailable if its result is incomplete", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json({ ...published, warnings: { incompleteResults: true } }))
        expect((yield* Effect.flip(check({ baseUrl: url }))).reason).toBe("it gave up before the end of the text")
      })
    ))

  test("is unavailable if it cannot be reached", () =>
    run(
      Effect.gen(function* () {
        expect(yield* Effect.flip(check({ baseUrl: yield* nobody }))).toBeInstanceOf(UpstreamUnavailable)
      })
    ))

  test.each(hangs(published))("is unavailable if it hangs %s longer than allowed, and the connection is closed", (_, answer) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer)
        const asked = yield* Effect.forkChild(Effect.flip(check({ baseUrl: service.url, timeLimit: "20 seconds" })), {
          startImmediately: true
        })
        yield* service.received
        yield* TestClock.adjust("20 seconds")
        expect(yield* Fiber.join(asked)).toMatchObject({ _tag: "UpstreamUnavailable", reason: "its reply exceeds the time limit" })
        yield* service.abandoned
      })
    )
  )

  test("is disconnected when the check is interrupted", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(() => undefined)
        const asked = yield* Effect.forkChild(check({ baseUrl: service.url }), { startImmediately: true })
        yield* service.received
        yield* Fiber.interrupt(asked)
        yield* service.abandoned
      })
    ))

  test("supports any well-formed language by default", () => {
    const any = supports()
    for (const language of ["en", "de-DE", "ca-ES-valencia", "SR-latn-rs", "de-DE-x-simple-language"]) expect(any(language)).toBe(true)
    for (const language of ["", "e", "en_GB", "english-language-of-mine", "auto", "-en", "en-"]) expect(any(language)).toBe(false)
    const some = supports(["en-GB", "de"])
    for (const language of ["en-GB", "EN-gb", "de"]) expect(some(language)).toBe(true)
    for (const language of ["en", "de-DE", "fr", "x"]) expect(some(language)).toBe(false)
  })
})
