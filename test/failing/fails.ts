/** A test that fails, for `test/structure/exit-code.test.ts`. It is of no run of the tests. */
import { expect, test } from "vitest"

test("fails", () => expect(1).toBe(2))
