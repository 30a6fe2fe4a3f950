/** The names of all invariants. */
export type Rule =
  | "time never goes back, and nothing that is due waits for what comes after it"
  | "a hold is made once and ends once"
  | "no hold without a deadline"
  | "amounts are quantity times price, and no more is charged than held"
  | "what goes back goes to the lots it came from, never more than came"
  | "no lot gives more than it has"
  | "what expires first is used first"
  | "a lot expires when it is due, with all that is free"
  | "what comes back into an expired lot lives on for as long as its hold says"
  | "a payment grants once"
  | "no more is clawed back than was paid, nor reversed than was clawed back"
  | "debt is repaid by paid lots, and nothing is held in debt"
  | "one success for each idempotency key and day"
  | "ten trials"
  | "nothing is held while suspended or closed"
  | "postings sum to zero and equal the fold"
  | "the fold can be made"
  | JobRule

export type JobRule =
  | "a job is accepted or refused first, and ends once"
  | "attempts are counted, and only the newest is heard"
  | "a job is taken over when its lease is over, and tried again when it is time"
  | "a job is not begun after its deadline"
  | "progress never goes back"
  | "a job's hold is made before it and ends after it, as it ended"

/** Gets each violation of a rule by the event that is checked. */
export type Report = (rule: Rule, detail: string) => void
