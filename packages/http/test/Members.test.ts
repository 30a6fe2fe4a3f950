import fc from "fast-check"
import { expect, test } from "vitest"
import { type Member, Members } from "../src/Members.ts"

test("has what was added and not removed, however often and in whatever order it is removed", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constant("add" as const), fc.nat())), (steps) => {
      const members = new Members<number>()
      const made: Array<Member<number>> = []
      const expected = new Set<number>()
      for (const step of steps) {
        const member = step === "add" ? undefined : made[step % made.length]
        if (step === "add") {
          expected.add(made.length)
          made.push(members.add(made.length))
        } else if (member !== undefined) {
          expected.delete(member.value)
          members.remove(member)
        }
        expect(members.size).toBe(expected.size)
        expect(new Set(members)).toEqual(expected)
      }
    })
  )
})

test("can be gone through while its members are removed", () => {
  const members = new Members<number>()
  const made = [1, 2, 3, 4].map((value) => members.add(value))
  const seen: Array<number> = []
  for (const value of members) {
    seen.push(value)
    for (const member of made) members.remove(member)
  }
  expect(seen).toEqual([1, 2, 3, 4])
  expect(members.size).toBe(0)
})
