import { Account, type AccountEvent } from "@millrace/core"
import { Arbitraries } from "@millrace/testing"
import { Schema } from "effect"
import fc from "fast-check"
import { expect, test } from "vitest"
import { send } from "./letters.ts"

test("a letter is charged for each address, whatever the input", () => {
  fc.assert(fc.property(Arbitraries.inputOf(send), (input) => send.quantity(input) === input.to.length))
})

const Stamp = Schema.Struct({ country: Schema.String.check(Schema.isPattern(/^[A-Z]{2}$/u)), cents: Schema.Int })

test("every value of a schema keeps its checks", () => {
  fc.assert(fc.property(Arbitraries.arbitraryOf(Stamp), Schema.is(Stamp)))
})

test("every event of an account survives its codec", () => {
  const { codec } = Account.Account
  fc.assert(
    fc.property(Arbitraries.accountEvent, (event: AccountEvent) => {
      const { data, type } = codec.encode(event)
      expect(codec.decode(type, data)).toEqual(event)
    })
  )
})
