import { Grammar, UpstreamUnavailable } from "@millrace/core"
import { HarperGrammarChecker } from "@millrace/upstreams"
import { Effect, Fiber, ManagedRuntime, Result, type Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { afterAll, describe, expect, test } from "vitest"
import { watchThreads } from "../shared/Threads.ts"

type Match = (typeof Grammar.GrammarReport.Type)["matches"][number]

const check = (text: string, language = "en-US", accountId = "acc_1") =>
  Effect.map(
    Grammar.GrammarChecker.use((checker) => checker.check({ accountId, text, language })),
    ({ matches }) => matches
  )

/** The text with what a match is about replaced as it says. */
const corrected = (text: string, { offset, length, replacements }: Match): string =>
  text.slice(0, offset) + (replacements[0] ?? "") + text.slice(offset + length)

/** Sentences with one mistake each, the rule that finds it, and how the sentence is right. */
const MISTAKES: ReadonlyArray<readonly [wrong: string, rule: string, right: string]> = [
  ["This is an test.", "AnA", "This is a test."],
  ["I could of done it.", "ModalOf", "I could have done it."],
  ["It stood in teh garden.", "The", "It stood in the garden."],
  ["We saw the the garden.", "RepeatedWords", "We saw the garden."],
  ["It was too  far.", "Spaces", "It was too far."],
  ["They walked there , slowly.", "CommaFixes", "They walked there, slowly."],
  ["I has a plan.", "PronounVerbAgreement", "I have a plan."]
]

describe("Harper", () => {
  const runtime = ManagedRuntime.make(HarperGrammarChecker.layer())
  afterAll(() => runtime.dispose())

  test.each(MISTAKES)("finds the fault in %j by the rule %s", async (wrong, rule, right) => {
    const matches = await runtime.runPromise(check(wrong))
    expect(matches).toHaveLength(1)
    const [match] = matches
    expect(match).toMatchObject({ rule, message: expect.stringMatching(/\S/u) })
    expect(match && corrected(wrong, match)).toBe(right)
  })

  test("finds nothing in correct text", async () => {
    for (const [, , right] of MISTAKES) expect(await runtime.runPromise(check(right))).toEqual([])
  })

  test("counts UTF-16 code units, and gives whole replacements", async () => {
    const before = fc.constantFrom("😀", "👨‍👩‍👧", "🇩🇪", "e\u0301", "ﷺ", "日本語", "Ünïcödé", "𝕋𝕖𝕩𝕥", "\u{1F44D}\u{1F3FD}", "plain", "שלום")
    await fc.assert(
      fc.asyncProperty(
        fc.array(before, { maxLength: 8 }),
        fc.constantFrom("\n\n", "\r\n\r\n"),
        fc.constantFrom(...MISTAKES),
        async (words, gap, mistake) => {
          const [wrong, rule, right] = mistake
          const start = words.join(" ") + gap
          const found = (await runtime.runPromise(check(start + wrong))).filter((match) => match.rule === rule)
          expect(found.map((match) => corrected(start + wrong, match))).toContain(start + right)
        }
      ),
      { seed: 1, numRuns: 100 }
    )
  })

  test("returns matches in order, within the text, and at whole characters", async () => {
    const words = fc.constantFrom(
      "teh",
      "an",
      "test",
      "test.",
      "I",
      "has",
      "the",
      "the",
      ",",
      "could",
      "of",
      "😀",
      "e\u0301",
      "\n",
      "  ",
      '"',
      "(",
      "1st",
      "don't"
    )
    const text = fc.oneof(
      fc.array(words, { maxLength: 40 }).map((words) => words.join(" ")),
      fc.string({ unit: "grapheme", maxLength: 60 })
    )
    await fc.assert(
      fc.asyncProperty(
        text.filter((text) => text.isWellFormed()),
        async (text) => {
          const matches = await runtime.runPromise(check(text))
          for (const { offset, length } of matches) {
            expect(length > 0 && offset >= 0 && offset + length <= text.length).toBe(true)
            expect(text.slice(offset, offset + length).isWellFormed()).toBe(true)
          }
          expect(matches.map(({ offset }) => offset)).toEqual(matches.map(({ offset }) => offset).sort((a, b) => a - b))
        }
      ),
      { seed: 1, numRuns: 150 }
    )
  })

  test("checks each dialect in turn", async () => {
    const spelling = async (language: string) => {
      const matches = await runtime.runPromise(check("The colour is grey. The color is gray.", language))
      return matches.filter(({ rule }) => rule === "SpellCheck").map(({ offset }) => offset)
    }
    expect(await spelling("en")).toEqual([4, 14])
    expect(await spelling("EN-us")).toEqual([4, 14])
    expect(await spelling("en-GB")).toEqual([24, 33])
    for (const language of ["en-AU", "en-CA", "en-IN"]) expect(await spelling(language)).toContain(24)
    expect(await spelling("en-US")).toEqual([4, 14])
  })

  test("finds in a long text the faults of each sentence, at their offsets", async () => {
    const sentence = fc.constantFrom(...MISTAKES.flatMap(([wrong, , right]) => [wrong, right]))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(sentence, fc.constantFrom(" ", "\n\n")), { minLength: 60, maxLength: 150 }), async (sentences) => {
        const text = sentences.flat().join("")
        const expected: Array<readonly [string, string]> = []
        for (const [wrong] of sentences) {
          const mistake = MISTAKES.find(([text]) => text === wrong)
          if (mistake !== undefined) expected.push([mistake[1], mistake[2]])
        }
        const matches = await runtime.runPromise(check(text))
        expect(matches.map(({ rule }) => rule)).toEqual(expected.map(([rule]) => rule))
        for (const [i, match] of matches.entries()) expect(corrected(text, match)).toContain(expected[i]?.[1])
      }),
      { seed: 1, numRuns: 10 }
    )
  })

  test("does not report a missing capital at a cut within a sentence", async () => {
    const sentence = `We met ${"in the old garden and then ".repeat(60)}in the house.`
    expect(sentence.length).toBeGreaterThan(1_500)
    const matches = await runtime.runPromise(check(sentence))
    expect(matches.filter(({ rule }) => rule === "SentenceCapitalization")).toEqual([])
    expect(await runtime.runPromise(check("to be or not to be, that is the question."))).toMatchObject([
      { rule: "SentenceCapitalization", offset: 0 }
    ])
  })

  test("does not report a quotation that ends in another piece", async () => {
    const unclosed = async (text: string) => {
      const matches = await runtime.runPromise(check(text))
      return matches.filter(({ rule }) => rule === "UnclosedQuotes").length
    }
    expect(await unclosed('He said, "We met in the garden.')).toBe(1)
    expect(await unclosed(`He said, "${"We met in the garden. ".repeat(60)}We left."`)).toBe(0)
  })

  test("returns the documented example", async () => {
    const { input, data } = Grammar.check.example ?? expect.fail("there is no example")
    expect(await runtime.runPromise(check(input.text, input.language))).toEqual(data.matches)
  })

  test("supports English only", async () => {
    const supports = await runtime.runPromise(Grammar.GrammarChecker.use((checker) => Effect.succeed(checker.supports)))
    for (const language of ["en", "EN", "en-US", "en-gb", "En-Au", "en-CA", "en-in"]) expect(supports(language)).toBe(true)
    for (const language of ["", "de", "fr-CA", "en-ZA", "en_US", "eng", "english", " en", "auto"]) expect(supports(language)).toBe(false)
  })

  test.each([
    ["prose", "We met in the the old garden, and it were raining. ".repeat(980)],
    ["a word that would exhaust its memory", `This is an test. ${"x".repeat(49_000)} This is an test.`],
    ["signs that would take it a minute", `This is an test. ${"( ".repeat(24_480)}( This is an test.`],
    ["another script that would as well", `This is an test. ${"привет мир ".repeat(4_500)}сэр This is an test.`]
  ])("checks 50,000 characters of %s", async (_, text) => {
    const matches = await runtime.runPromise(check(text))
    expect(matches.length).toBeGreaterThan(1)
    for (const { offset, length } of matches) expect(["an", "the the", "were"]).toContain(text.slice(offset, offset + length))
  })
})

describe("Harper's thread", () => {
  /** Longer to check than anybody waits. */
  const SLOW = "abc ".repeat(12_500)

  const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope | Grammar.GrammarChecker>): Promise<A> =>
    Effect.runPromise(
      Effect.scoped(effect.pipe(Effect.provide(HarperGrammarChecker.layer({ waitLimit: "15 seconds", timeLimit: "1 minute" })))).pipe(
        Effect.provide(TestClock.layer({ warningDelay: "1 minute" }))
      )
    )

  test("starts with the first check, and ends with the layer", async () => {
    const ended = await Effect.gen(function* () {
      const threads = yield* watchThreads
      yield* Effect.gen(function* () {
        const checker = yield* Grammar.GrammarChecker
        expect(threads.started).toHaveLength(0)
        yield* Effect.all([check("This is an test."), check("All is well.")], { concurrency: 2 })
        expect(checker.supports("en")).toBe(true)
        expect(threads.started).toHaveLength(1)
        expect(threads.ended).toHaveLength(0)
      }).pipe(Effect.provide(HarperGrammarChecker.layer(), { local: true }))
      return threads.ended.length
    }).pipe(Effect.scoped, Effect.runPromise)
    expect(ended).toBe(1)
  })

  test("is replaced after a crash or an interruption: one check fails, isolated, and others continue", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const slow = Effect.forkChild(check(SLOW).pipe(Effect.result), { startImmediately: true })

        yield* check("All is well.")
        const killed = yield* slow
        const waiting = yield* Effect.forkChild(check("This is an test."), { startImmediately: true })
        yield* Effect.promise(async () => threads.started[0]?.terminate())
        expect(yield* Fiber.join(killed)).toEqual(
          Result.fail(new UpstreamUnavailable({ upstream: "harper", reason: "the worker thread ended with code 1", isolated: true }))
        )
        expect(yield* Fiber.join(waiting)).toHaveLength(1)
        expect(threads.started).toHaveLength(2)

        const interrupted = yield* slow
        yield* Fiber.interrupt(interrupted)
        expect(threads.ended).toHaveLength(2)
        expect(yield* check("This is an test.")).toHaveLength(1)
      })
    ))

  test("keeps running when a waiting text exceeds its limit", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        yield* check("All is well.")
        const slow = yield* Effect.forkChild(Effect.result(check(SLOW)), { startImmediately: true })
        yield* TestClock.adjust("15 seconds")
        expect(yield* Fiber.join(slow)).toEqual(
          Result.fail(new UpstreamUnavailable({ upstream: "harper", reason: "it waited too long for its turn", isolated: true }))
        )
        expect(threads.ended).toHaveLength(0)
        expect(yield* check("This is an test.")).toHaveLength(1)
      })
    ))

  test("serves all texts of one account while another sends 25 of 50,000 random letters", () =>
    Effect.gen(function* () {
      const letters = fc.string({ unit: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz"), minLength: 3, maxLength: 6 })
      const words = fc.sample(letters, { numRuns: 15_000, seed: 1 }).join(" ").slice(0, 50_000)
      const hostile = yield* Effect.forEach(Array.from({ length: 25 }), () =>
        Effect.forkChild(Effect.exit(check(words, "en", "acc_hostile")), { startImmediately: true })
      )
      const answers = yield* Effect.forEach(
        Array.from({ length: 30 }),
        () => Effect.result(check("This is an test.", "en", "acc_honest")),
        { concurrency: "unbounded" }
      )
      for (const answer of answers) expect(answer).toMatchObject({ success: [{ rule: "AnA", offset: 8 }] })
      expect(hostile.filter((fiber) => fiber.pollUnsafe() === undefined).length).toBeGreaterThan(20)
      yield* Effect.forEach(hostile, Fiber.interrupt, { concurrency: "unbounded" })
    }).pipe(Effect.provide(HarperGrammarChecker.layer({ waitLimit: "1 hour", timeLimit: "1 hour" })), Effect.scoped, Effect.runPromise))
})
