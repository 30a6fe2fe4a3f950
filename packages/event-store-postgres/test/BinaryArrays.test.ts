import fc from "fast-check"
import { expect, test } from "vitest"
import { int8s } from "../src/BinaryArrays.ts"

/** Bytes before the first element's length, and that length. */
const [HEADER, LENGTH] = [20, 4]

test("integers of eight bytes are written as the server reads them", () =>
  fc.assert(
    fc.property(fc.array(fc.maxSafeInteger(), { minLength: 1 }), (all) => {
      const buffer = int8s(all)
      expect(all.map((_, i) => Number(buffer.readBigInt64BE(HEADER + i * (LENGTH + 8) + LENGTH)))).toEqual(all)
    }),
    { examples: [[[-1, 0, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, -(2 ** 32), Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]]] }
  ))
