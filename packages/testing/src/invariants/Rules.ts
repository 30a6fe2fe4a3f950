/** All invariants. A violation names one by its text. */
export const RULES = {
  time: "time never goes back, and due expiries come first",
  holdOnce: "a hold is made once and ends once",
  deadline: "every hold has a deadline",
  amount: "an amount is quantity times price, and at most the hold is charged",
  returned: "credits return to the lots that they came from, and no more than came",
  overdrawn: "no lot is overdrawn",
  order: "lots that expire first are used first",
  expiry: "a lot expires when it is due, with all its available credits",
  lifetime: "credits returned to an expired lot live as long as their hold says",
  paymentOnce: "a payment grants once",
  clawback: "at most what was paid is clawed back, and at most that is reversed",
  debt: "paid lots repay debt, and an account in debt holds nothing",
  keyOnce: "one success for each idempotency key and day",
  recurring: "a recurring grant grants each of its periods once, when it begins, and by its terms",
  announced: "the expiry of a lot is announced once, before it, with the credits that the lot has",
  low: "a balance that falls below its threshold is told, once, and at no other time",
  trials: "an account has ten trials",
  barred: "a suspended or closed account holds nothing",
  books: "postings sum to zero and equal the fold",
  folds: "every event folds",
  jobOnce: "a job is accepted or refused first, and ends once",
  newest: "attempts are numbered, and only the newest attempt reports",
  lease: "an attempt starts after the lease of the attempt before it, and not before its time",
  jobDeadline: "no attempt starts after the job's deadline",
  progress: "progress never goes back",
  jobHold: "a job's hold is made before the job, and ends after it as the job ended",
  address: "an address is claimed once, and belongs to the inbox that claimed it for ever",
  inbox: "an inbox is created first, and nothing happens to it after its end or its expiry",
  mail: "a message comes once, to the present address of its inbox",
  text: "a text message is received once, and a code is of one that came to the number",
  waitOnce: "a wait has one outcome",
  waitCharge: "a wait is charged after its outcome, and not if its caller left",
  session: "a proxy session is opened first, and ends once: at its expiry, when its bytes are used up, or by an administrator",
  traffic: "what a node counts never falls, and is counted within the grace after the end of the session"
} as const

export type Rule = (typeof RULES)[keyof typeof RULES]

/** Gets each violation by the event that is checked. */
export type Report = (rule: keyof typeof RULES, detail: string) => void
