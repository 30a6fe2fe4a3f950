/** Whether a message is the one that a caller awaits: by the name of its sender, or by a name in its text. */
import { normalised } from "./CodeExtractor.ts"

/** Names of one service each. A caller may give any; a message names any. */
const SERVICES: ReadonlyArray<ReadonlyArray<string>> = [
  ["google", "g", "gmail", "youtube"],
  ["facebook", "fb", "meta"],
  ["x", "twitter"],
  ["whatsapp", "wa"],
  ["microsoft", "msft", "outlook", "hotmail", "skype"],
  ["apple", "apple id", "icloud"],
  ["amazon", "aws", "アマゾン"],
  ["instagram", "ig"],
  ["tiktok", "抖音"],
  ["telegram", "телеграм", "تيليجرام"],
  ["wechat", "微信"],
  ["alipay", "支付宝"],
  ["taobao", "淘宝", "淘宝网"],
  ["jd", "jd.com", "京东"],
  ["qq", "腾讯", "腾讯科技"],
  ["didi", "滴滴", "滴滴出行"],
  ["line", "ライン"],
  ["rakuten", "楽天"],
  ["mercari", "メルカリ"],
  ["kakao", "kakaotalk", "카카오"],
  ["naver", "네이버"],
  ["yandex", "яндекс"],
  ["vk", "vkontakte", "вконтакте"],
  ["sberbank", "sber", "сбербанк", "сбер"],
  ["uber", "أوبر"],
  ["linkedin", "li"],
  ["github", "gh"],
  ["mercado libre", "mercado livre", "mercadolibre", "mercadolivre"],
  ["bank of america", "bofa"],
  ["wells fargo", "wellsfargo"]
]

/** Names of fewer letters are parts of other words, so they stand alone. */
const SHORT = 4
const escape = (name: string): string => name.replaceAll(/[\\^$.*+?()[\]{}|]/gu, "\\$&")

/** By each name of a service, what finds all of them: made once, because ten thousand callers may wait. */
const patterns = new Map(
  SERVICES.flatMap((names) => {
    const alternatives = names.map((name) => (name.length < SHORT ? `(?<![\\p{L}\\p{N}])${escape(name)}(?![\\p{L}\\p{N}])` : escape(name)))
    const pattern = new RegExp(alternatives.join("|"), "u")
    return names.map((name) => [name, pattern] as const)
  })
)

const isDigits = (text: string): boolean => /^\+?[\d\s().-]{3,}$/u.test(text)
const digitsOf = (text: string): string => text.replaceAll(/\D/gu, "")

/** What is searched of a message. */
export interface Words {
  /** In lower case. */
  readonly texts: readonly [sender: string, message: string]
  /** The digits of the sender's phone number; undefined for a name. */
  readonly number: string | undefined
}

export const wordsOf = (sender: string, message: string): Words => ({
  texts: [normalised(sender), normalised(message)],
  number: isDigits(sender) ? digitsOf(sender) : undefined
})

/**
 * Returns the test of messages for an identifier: a part of the sender or of the text in any case, another name of the same service, or the
 * sender's phone number however it is written. `identifier` is not empty.
 */
export const matcher = (identifier: string): ((words: Words) => boolean) => {
  const awaited = normalised(identifier).trim()
  const pattern = patterns.get(awaited)
  const digits = isDigits(awaited) ? digitsOf(awaited) : undefined
  return ({ number, texts }) =>
    (digits !== undefined && number === digits) ||
    texts.some((text) => (pattern === undefined ? text.includes(awaited) : pattern.test(text)))
}
