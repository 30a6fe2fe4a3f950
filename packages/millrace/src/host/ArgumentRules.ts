/** What calls and acts of a host must be given. The types say the same to callers in TypeScript. */
import { Notices } from "@millrace/core"
import * as Given from "./Given.ts"

const date = Given.rule("a Date", (value) => value instanceof Date && !Number.isNaN(value.getTime()))
const words = Given.text("a text")

/** Who acted, and why. */
const RECORDED: Given.Rules = { by: words, reason: words }

/** The options of `run`. */
export const CALLED: Given.Rules = {
  account: Given.anything,
  idempotencyKey: Given.text("a text that names this call, or leave it out"),
  maxCredits: Given.anything,
  requestId: words,
  signal: Given.rule("an AbortSignal", (value) => value instanceof AbortSignal)
}

const id = Given.text('a text, such as String(user.id) or "user-7"')
const email = Given.text("an e-mail address")

export const OPENING: Given.Rules = { id, email, verified: Given.flag, ...RECORDED }
export const FINDING: Given.Rules = { id, email }

export const GRANT: Given.Rules = {
  amount: Given.anything,
  source: Given.anything,
  paymentRef: Given.text("the id of the payment"),
  expiresAt: date,
  every: Given.anything,
  until: date,
  expires: Given.anything,
  ...RECORDED
}

export const AT: Given.Rules = { at: date }

export const OWNER: Given.Rules = {
  account: Given.text("the account whose job it is"),
  timeout: Given.rule("milliseconds, a number of at least 0", Given.isNumber(0)),
  part: Given.rule("the number of a file, from 1", Given.isInt(1))
}

export const WEBHOOK: Given.Rules = {
  url: Given.text("the address to post to"),
  on: Given.rule("an array of names of notices", (value) => value === null || Array.isArray(value)),
  account: Given.text("an account"),
  label: words,
  ...RECORDED
}

export const SESSIONS: Given.Rules = { account: Given.text("an account"), open: Given.flag }

export const PAYMENTS: Given.Rules = {
  account: Given.text("an account"),
  status: Given.oneOf("pending", "authorized", "captured", "failed"),
  limit: Given.rule("a whole number of at least 1", Given.isInt(1))
}

export const REFUND: Given.Rules = {
  amount: Given.rule("an amount of money, a number above 0", (value) => Given.isNumber(0)(value) && value !== 0),
  id: Given.text("a text that names this refund"),
  ...RECORDED
}

export const BACKUP: Given.Rules = {
  to: Given.text("the folder to make"),
  keysLifetime: Given.rule("milliseconds, a number of at least 0", Given.isNumber(0)),
  withMasterKey: Given.flag
}

export const JOURNAL: Given.Rules = {
  format: Given.oneOf("hledger", "ledger", "beancount", "csv", "jsonl"),
  events: Given.text("the file of an export"),
  unverified: Given.flag
}

export const NOTICE = Given.oneOf(...Object.keys(Notices.NOTICES))
