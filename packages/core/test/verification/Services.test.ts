import { describe, expect, test } from "vitest"
import { matcher, wordsOf } from "../../src/verification/Services.ts"

const matches = (identifier: string, sender: string, message = "") => matcher(identifier)(wordsOf(sender, message))

describe("a message is the awaited one", () => {
  test.each([
    ["a part of its sender", "oogl", "Google"],
    ["a part of its text, in any case", "EXAMPLE", "22000", "Your example code is 1234"],
    ["another name of the service", "twitter", "X", "Your code is 1234"],
    ["a name in another script", "wechat", "1069", "【微信】验证码 1234"],
    ["the sender's number, however it is written", "+1 (415) 555-0100", "+14155550100"],
    ["a part of the sender's number", "5550100", "+14155550100"],
    ["a wide notation of its letters", "Ｇｏｏｇｌｅ", "google"]
  ])("by %s", (_, identifier, sender, message = "") => {
    expect(matches(identifier, sender, message)).toBe(true)
  })

  test.each([
    ["another name", "example", "Other", "Your code is 1234"],
    ["a short name of the service within a word", "twitter", "Example", "Your Netflix code is 1234"],
    ["another number", "+14155550100", "+14155550101"],
    ["what a pattern would match", "e.ample", "Example"]
  ])("not by %s", (_, identifier, sender, message = "") => {
    expect(matches(identifier, sender, message)).toBe(false)
  })
})
