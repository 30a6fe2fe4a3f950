import { Effect, Redacted, Result } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as MasterKey from "../../src/vault/MasterKey.ts"
import { RandomBytes } from "../../src/vault/RandomBytes.ts"
import { check } from "./Property.ts"

const hexOf = (key: Result.Result<Redacted.Redacted<Uint8Array>, MasterKey.MalformedMasterKey>) =>
  Buffer.from(Redacted.value(Result.getOrThrow(key))).toString("hex")

const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 })

describe("a master key", () => {
  test("is the same from bytes, hexadecimal and both alphabets of base64, with or without white space", () => {
    check(
      fc.property(bytes32, (bytes) => {
        const buffer = Buffer.from(bytes)
        const hex = buffer.toString("hex")
        const texts = [hex, hex.toUpperCase(), buffer.toString("base64"), buffer.toString("base64url"), `  ${hex}\r\n`]
        for (const form of [bytes, ...texts]) expect(hexOf(MasterKey.parse(form))).toBe(hex)
      })
    )
  })

  test("is a copy: later changes of the given bytes do not change it", () => {
    const bytes = new Uint8Array(32).fill(7)
    const key = MasterKey.parse(bytes)
    bytes.fill(0)
    expect(hexOf(key)).toBe("07".repeat(32))
  })

  test("of another length or with an invalid digit is refused, and the error does not quote it", () => {
    check(
      fc.property(
        fc.uint8Array({ maxLength: 80 }).filter(({ length }) => length !== 32),
        (bytes) => {
          const hex = Buffer.from(bytes).toString("hex")
          for (const form of [bytes, hex, Buffer.from(bytes).toString("base64")]) {
            const error = Result.getOrThrow(Result.flip(MasterKey.parse(form)))
            expect(error._tag).toBe("MalformedMasterKey")
            if (hex.length > 8) expect(JSON.stringify(error)).not.toContain(hex)
          }
        }
      )
    )
    const key = "ab".repeat(32)
    for (const text of [`${key.slice(1)}g`, `${key.slice(2)} a`, `0x${key}`, "", "change me"])
      expect(Result.isFailure(MasterKey.parse(text))).toBe(true)
  })

  test("in base64 has exactly one valid last digit", () => {
    const text = Buffer.alloc(32, 255).toString("base64")
    expect(text.endsWith("8=")).toBe(true)
    expect(Result.isSuccess(MasterKey.parse(text))).toBe(true)
    expect(Result.isFailure(MasterKey.parse(text.replace("8=", "9=")))).toBe(true)
  })

  test("is redacted when it is printed", async () => {
    const key = await Effect.runPromise(
      Effect.gen(function* () {
        return yield* MasterKey.MasterKey
      }).pipe(Effect.provide(MasterKey.MasterKey.layer(Redacted.make("ab".repeat(32)))))
    )
    expect(`${key} ${JSON.stringify({ key })}`).not.toMatch(/abab|171/u)
  })

  test("that is malformed makes its layer fail", async () => {
    const layer = MasterKey.MasterKey.layer("short")
    const error = await Effect.runPromise(Effect.flip(Effect.provide(MasterKey.MasterKey.use(Effect.succeed), layer)))
    expect(error._tag).toBe("MalformedMasterKey")
  })

  test("can be generated and parsed", async () => {
    const made = MasterKey.generate.pipe(Effect.provideService(RandomBytes, (size) => new Uint8Array(size).fill(9)))
    expect(hexOf(MasterKey.parse(Redacted.value(await Effect.runPromise(made))))).toBe("09".repeat(32))
  })
})
