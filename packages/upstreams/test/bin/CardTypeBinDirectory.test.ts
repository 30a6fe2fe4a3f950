import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Bin, NotFound } from "@millrace/core"
import { CardTypeBinDirectory } from "@millrace/upstreams"
import { Effect, type Layer, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"

const lookup = <E>(layer: Layer.Layer<Bin.BinDirectory, E>, bin: string) =>
  Bin.BinDirectory.use((directory) => directory.lookup(bin)).pipe(Effect.provide(layer))

/** Gives a test a file with this content, for as long as it runs. */
const withFile = <A, E>(content: string | Uint8Array, use: (path: string) => Effect.Effect<A, E>): Promise<A> =>
  Effect.acquireUseRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "millrace-bins-"))),
    (folder) => {
      const path = join(folder, "bins.csv")
      return Effect.andThen(
        Effect.promise(() => writeFile(path, content)),
        use(path)
      )
    },
    (folder) => Effect.promise(() => rm(folder, { recursive: true }))
  ).pipe(Effect.runPromise)

const HEADER = "bin,scheme,type,brand,country,bank"
const BAD_HEADER = `the header must be ${HEADER}, in any order`

describe("the ranges of networks", () => {
  test("give scheme and brand only", async () => {
    expect(await Effect.runPromise(lookup(CardTypeBinDirectory.layer, "45717360"))).toEqual({
      bin: "45717360",
      scheme: "visa",
      type: null,
      brand: "Visa",
      country: null,
      bank: null
    })
  })

  test("give a record or nothing for any prefix", async () => {
    const isRecord = Schema.is(Bin.BinRecord)
    await fc.assert(
      fc.asyncProperty(fc.stringMatching(/^[0-9]{6,8}$/u), async (bin) => {
        const answer = await Effect.runPromise(
          Effect.match(lookup(CardTypeBinDirectory.layer, bin), { onSuccess: (a) => a, onFailure: (e) => e })
        )
        if (answer instanceof NotFound) expect(answer.resource).toBe("bin")
        else expect(isRecord(answer) && answer.bin === bin && answer.scheme === answer.scheme.toLowerCase()).toBe(true)
      }),
      { seed: 1, numRuns: 500 }
    )
  })
})

describe("an operator's file", () => {
  test("gives the record of the longest matching prefix", () =>
    withFile(
      [HEADER, "4,visa,,,,", '457173,Visa,Debit,Visa/Dankort,dk,"Jyske Bank, A/S"', "45717361,,credit,,CH,"].join("\r\n"),
      Effect.fnUntraced(function* (path) {
        const layer = CardTypeBinDirectory.layerFile(path)
        expect(yield* lookup(layer, "411111")).toEqual({
          bin: "411111",
          scheme: "visa",
          type: null,
          brand: "Visa",
          country: null,
          bank: null
        })
        expect(yield* lookup(layer, "4571730")).toEqual({
          bin: "4571730",
          scheme: "visa",
          type: "debit",
          brand: "Visa/Dankort",
          country: { name: "Denmark", code: "DK", currency: "DKK" },
          bank: { name: "Jyske Bank, A/S" }
        })
        expect(yield* lookup(layer, "45717361")).toEqual({
          bin: "45717361",
          scheme: "visa",
          type: "credit",
          brand: "Visa",
          country: { name: "Switzerland", code: "CH", currency: "CHF" },
          bank: null
        })
      })
    ))

  test("adds networks without ranges, and corrects others", () =>
    withFile(
      ["\uFEFFBank, Country ,brand,TYPE,scheme,bin", "State Bank,IN,,,RuPay,608001", ",,,,dankort,411111", "Somebody,,,,,999999", ""].join(
        "\n"
      ),
      Effect.fnUntraced(function* (path) {
        const layer = CardTypeBinDirectory.layerFile(path)
        expect(yield* lookup(layer, "60800199")).toMatchObject({ scheme: "rupay", brand: null, bank: { name: "State Bank" } })
        expect(yield* lookup(layer, "411111")).toMatchObject({ scheme: "dankort", brand: null })
        expect(yield* lookup(layer, "411112")).toMatchObject({ scheme: "visa", brand: "Visa" })
        expect(yield* Effect.flip(lookup(layer, "999999"))).toBeInstanceOf(NotFound)
        expect(yield* Effect.flip(lookup(layer, "608002"))).toBeInstanceOf(NotFound)
      })
    ))

  test("gives the longest of any set of prefixes", async () => {
    const prefix = fc.stringMatching(/^4[12]{0,7}$/u)
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(prefix, { maxLength: 12 }), fc.stringMatching(/^4[12]{5,7}$/u), (listed, bin) =>
        withFile(
          [HEADER, ...listed.map((prefix) => `${prefix},visa,,,,bank ${prefix}`)].join("\n"),
          Effect.fnUntraced(function* (path) {
            const longest = listed.filter((prefix) => bin.startsWith(prefix)).sort((a, b) => b.length - a.length)[0]
            const { bank } = yield* lookup(CardTypeBinDirectory.layerFile(path), bin)
            expect(bank?.name).toBe(longest === undefined ? undefined : `bank ${longest}`)
          })
        )
      ),
      { seed: 1, numRuns: 40 }
    )
  })

  test.each([
    ["an empty file", "", 1, "the file is empty"],
    ["a header without a column", "bin,scheme,type,brand,country\n", 1, BAD_HEADER],
    ["a header with one too many", `${HEADER},url\n`, 1, BAD_HEADER],
    ["no header", "411111,visa,debit,,DK,\n", 1, BAD_HEADER],
    ["a column twice", "bin,scheme,type,brand,bank,bank\n", 1, BAD_HEADER],
    ["semicolons", HEADER.replaceAll(",", ";"), 1, BAD_HEADER],
    ["a row too short", `${HEADER}\n411111,visa\n`, 2, "2 cells instead of 6"],
    ["a row too long", `${HEADER}\n411111,visa,debit,,DK,Jyske Bank, A/S\n`, 2, "7 cells instead of 6"],
    ["a whole card number", `${HEADER}\n\n4111111111111111,visa,,,,\n`, 3, "bin must have one to eight digits"],
    ["no number", `${HEADER}\n,visa,,,,\n`, 2, "bin must have one to eight digits"],
    ["a country by name", `${HEADER}\n411111,visa,,,Denmark,\n`, 2, '"Denmark" is no ISO 3166-1 alpha-2 code'],
    ["a prefix twice", `${HEADER}\n411111,visa,,,,\n4,,,,,\n411111,,,,,\n`, 4, "bin 411111 is listed twice"],
    ["a quote left open", `${HEADER}\n411111,visa,,,,"Bank\n`, 2, "a quote that is never closed"]
  ])("is refused with its line for %s", (_, content, line, reason) =>
    withFile(
      content,
      Effect.fnUntraced(function* (path) {
        const error = yield* Effect.flip(lookup(CardTypeBinDirectory.layerFile(path), "411111"))
        expect(error).toMatchObject({
          _tag: "BinFileError",
          path,
          line,
          reason,
          message: `The file of BIN ranges cannot be used: ${path}:${line}: ${reason}`
        })
      })
    )
  )

  test("is refused when it is missing or not UTF-8", () =>
    withFile(
      Buffer.from(`${HEADER}\n411111,visa,,,,Société\n`, "latin1"),
      Effect.fnUntraced(function* (path) {
        const wrong = yield* Effect.flip(lookup(CardTypeBinDirectory.layerFile(path), "411111"))
        expect(wrong).toMatchObject({ _tag: "BinFileError", line: null })
        const missing = yield* Effect.flip(lookup(CardTypeBinDirectory.layerFile(`${path}.gone`), "411111"))
        expect(missing).toMatchObject({ _tag: "BinFileError", line: null, reason: expect.stringContaining("ENOENT") })
      })
    ))
})
