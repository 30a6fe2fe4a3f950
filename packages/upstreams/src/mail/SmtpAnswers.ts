/** What an SMTP server answers when it takes no message, with the codes of RFC 5321, section 4.2. */
import type { InboxFull, ReceiverUnavailable, UnknownAddress } from "@millrace/core"

/** A refusal in the shape of `smtp-server`, which sends its code and text. The text shows nothing that a client sent. */
export interface Refusal extends Error {
  readonly responseCode: number
}

const refusal = (responseCode: number, text: string): Refusal => Object.assign(new Error(text), { responseCode })

export const NOT_HERE = refusal(550, "No such mailbox here")
export const FULL = refusal(452, "The mailbox is full")
export const NOT_NOW = refusal(451, "The message cannot be taken now, try again later")
/** Some recipients took the message and others did not. The next attempt gets an answer for each at RCPT TO. */
export const NOT_ALL = refusal(451, "Not every mailbox took the message, try again later")
export const TOO_OFTEN = refusal(450, "Too many recipients from this address, try again later")
export const tooLarge = (limit: number): Refusal => refusal(552, `The message exceeds ${limit} bytes`)

/** Lines before the session or instead of it, so they have no sanitised text of the library. */
export const CLOSING = "The server is shutting down, try again later"
export const TOO_MANY_CONNECTIONS = "Too many connections, try again later"
export const TOO_LONG = "The session takes too long"
export const TOO_MANY_REFUSED = "Too many unknown recipients"

export const refusalOf = (error: UnknownAddress | InboxFull | ReceiverUnavailable): Refusal => {
  switch (error._tag) {
    case "UnknownAddress":
      return NOT_HERE
    case "InboxFull":
      return FULL
    case "ReceiverUnavailable":
      return NOT_NOW
  }
}

/**
 * The one answer to DATA for all recipients: undefined if each took the message. A permanent refusal only if nobody took it, because the
 * sender then gives up for all of them. A temporary one if some took it: the sender tries again with all, RCPT TO refuses those that are
 * gone, and the others know the message by its queue id.
 */
export const answerOf = (outcomes: ReadonlyArray<Refusal | undefined>): Refusal | undefined => {
  const refusals = outcomes.filter((outcome) => outcome !== undefined)
  const [first] = refusals
  if (first === undefined || refusals.includes(NOT_NOW)) return first === undefined ? undefined : NOT_NOW
  return refusals.length === outcomes.length && refusals.every((other) => other === first) ? first : NOT_ALL
}
