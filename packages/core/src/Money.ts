/** What a host calls its credits, and what one of them is worth. Amounts stay in thousandths of a credit; this is for people to read. */
import { Context } from "effect"
import { type Credits, toDecimal } from "./Credits.ts"

export interface Money {
  /** One of them: `credit`. */
  readonly credit: string
  /** Several of them: `credits`. */
  readonly credits: string
  /** The value of one, in decimal digits: `0.001`. */
  readonly value: string
  /** Of that value, by ISO 4217: `USD`. */
  readonly currency: string
}

export const STANDARD: Money = { credit: "credit", credits: "credits", value: "0.001", currency: "USD" }

/** The money of this host: {@link STANDARD} unless it is provided. */
export const Current = Context.Reference<Money>("@millrace/core/Money/Current", { defaultValue: () => STANDARD })

const WORD = /^\p{L}[\p{L}\p{N} '-]{0,29}$/u

/** Parses the name of one and of several: `token/tokens`. Undefined unless both are words of at most 30 characters. */
export const parseName = (text: string): Pick<Money, "credit" | "credits"> | undefined => {
  const [credit = "", credits = "", ...others] = text.split("/")
  return others.length === 0 && WORD.test(credit) && WORD.test(credits) ? { credit, credits } : undefined
}

const WORTH = /^(?<value>\d{1,9}(?:\.\d{1,12})?) (?<currency>[A-Z]{3})$/u

/** Parses a value with its currency, such as `0.001 USD`. Undefined if it is none, or zero. */
export const parse = (text: string): Pick<Money, "value" | "currency"> | undefined => {
  const { currency, value } = WORTH.exec(text)?.groups ?? {}
  return value === undefined || currency === undefined || !/[1-9]/u.test(value) ? undefined : { value, currency }
}

/** An amount for a sentence: `1.5 credits`. */
export const text = (amount: Credits, { credit, credits }: Money = STANDARD): string =>
  `${toDecimal(amount)} ${amount === 1000 ? credit : credits}`

/** A failure whose sentence names amounts. */
interface Worded {
  readonly messageIn: (money: Money) => string
}

const isWorded = (failure: object): failure is Worded => "messageIn" in failure && typeof failure.messageIn === "function"

/** The sentence of a failure, in the words of a host where it names amounts. Undefined for a failure without one. */
export const sentenceOf = (failure: { readonly message?: string | undefined }, money: Money): string | undefined =>
  isWorded(failure) ? failure.messageIn(money) : failure.message

/** What an amount is worth: exact decimal digits, without zeros at the end. `1.5` credits of `0.001` are `0.0015`. */
export const worthOf = (amount: Credits, { value }: Money = STANDARD): string => {
  const [whole = "0", part = ""] = value.split(".")
  const places = part.length + 3
  const digits = (BigInt(amount) * BigInt(whole + part)).toString().padStart(places + 1, "0")
  const decimals = digits.slice(-places).replace(/0+$/u, "")
  return decimals === "" ? digits.slice(0, -places) : `${digits.slice(0, -places)}.${decimals}`
}
