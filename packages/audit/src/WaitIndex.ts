/** The text messages in the log, as far as it was read, and the outcomes of waits for their codes. */
import { Sms, Verification } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { type CallIndex, WAIT } from "./CallIndex.ts"
import { noAmount } from "./Means.ts"
import { iso, type Replay, type ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"

/** How long a message can be found: milliseconds. */
const KEPT = 24 * 3_600_000
/** Hosts differ so much in their clocks, and take so long to record what they found, at most: milliseconds. */
const MARGIN = 5 * 60_000

const NOBODY = "no hold pays for this wait, so it may have been done for nothing"
const OTHER = "and the answer may be the code of another message"

interface Message {
  readonly number: string
  /** When it was received, milliseconds since 1970. */
  readonly at: number
}

export class WaitIndex {
  readonly #messages = new Map<string, Message>()
  readonly #doubtful = new Set<string>()
  readonly #calls: CallIndex

  constructor(calls: CallIndex) {
    this.#calls = calls
  }

  beginMessage(stream: StreamName.StreamName): Replay {
    const { codec, evolve, initial } = Sms.Sms
    let sms: Sms.Sms = initial
    return (type, data, at) => {
      const event = codec.decode(type, data)
      sms = evolve(sms, event, at)
      this.#messages.set(StreamName.id(stream), { number: event.number, at })
    }
  }

  lostMessage(stream: StreamName.StreamName): void {
    this.#doubtful.add(StreamName.id(stream))
  }

  beginWait(stream: StreamName.StreamName, report: ReportProblem): Replay {
    const { codec, evolve, initial } = Verification.Verification
    const id = StreamName.id(stream)
    let wait: Verification.Verification = initial
    return (type, data, at) => {
      const event = codec.decode(type, data)
      wait = evolve(wait, event, at)
      const { accountId: account } = event
      const unpaid = this.#unpaid(id, event)
      if (unpaid !== undefined) report("wait-is-of-its-reservation" satisfies RuleName, unpaid, () => ({ account, ...noAmount(NOBODY) }))
      const wrong = event._tag === "CodeFound" ? this.#notFound(event.sms, event.number, at) : undefined
      if (wrong !== undefined)
        report("code-is-of-a-message" satisfies RuleName, wrong, (say) => this.#calls.stakeOf(id, account, OTHER, say))
      this.#calls.leave(id, event._tag)
    }
  }

  #unpaid(id: string, { accountId, reservationId }: Verification.VerificationEvent): string | undefined {
    if (Verification.idOf(reservationId) !== id) return `it names reservation ${reservationId}, whose wait is another stream`
    return this.#calls.unpaid(WAIT, id, accountId)
  }

  /** Why a message cannot have been found at a number at a time; undefined if it can. */
  #notFound(sms: string, number: string, at: number): string | undefined {
    if (this.#doubtful.has(sms)) return undefined
    const message = this.#messages.get(sms)
    if (message === undefined) return `message ${sms} had not been received`
    if (message.number !== number) return `the message was received at ${message.number}, and awaited at ${number}`
    if (at < message.at - MARGIN) return `the message was received at ${iso(message.at)}, after it was found`
    return at < message.at + KEPT + MARGIN ? undefined : `the message was received at ${iso(message.at)}, more than a day before`
  }
}
