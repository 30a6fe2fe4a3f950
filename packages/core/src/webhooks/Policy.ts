/** When a delivery is tried again, and when it is given up. */
import { Duration, Effect, Random } from "effect"

export interface DeliveryOptions {
  /**
   * The pauses after each failed attempt, lengthened or shortened by up to a tenth at random: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h,
   * 20 h, 24 h by default, as Standard Webhooks suggests. After the last of them one more attempt follows; then it is a dead letter.
   */
  readonly pauses?: ReadonlyArray<Duration.Input>
  /** How long dead letters are kept: 30 days by default. */
  readonly keepDeadLetters?: Duration.Input
  /** The most dead letters of a webhook: 10,000 by default. The oldest are dropped. */
  readonly deadLetterLimit?: number
  /** A webhook is disabled when every attempt has failed for so long: 5 days by default. */
  readonly disableAfter?: Duration.Input
  /** How many deliveries of a webhook are sent at once: 4 by default. */
  readonly concurrency?: number
  /**
   * The most deliveries of a webhook that wait in the state store: 10,000 by default. What happens beyond that waits in the log, and follows
   * when there is room again.
   */
  readonly waitingLimit?: number
  /** How long a host that stops lets running deliveries end: 5 seconds by default. */
  readonly drain?: Duration.Input
}

const PAUSES: ReadonlyArray<Duration.Input> = [
  "5 seconds",
  "5 minutes",
  "30 minutes",
  "2 hours",
  "5 hours",
  "10 hours",
  "14 hours",
  "20 hours",
  "24 hours"
]

/** The options in milliseconds, with their defaults. */
export const of = (options: DeliveryOptions) => ({
  pauses: (options.pauses ?? PAUSES).map((pause) => Duration.toMillis(pause)),
  keepDeadLetters: Duration.toMillis(options.keepDeadLetters ?? "30 days"),
  deadLetterLimit: options.deadLetterLimit ?? 10_000,
  disableAfter: Duration.toMillis(options.disableAfter ?? "5 days"),
  concurrency: options.concurrency ?? 4,
  waitingLimit: options.waitingLimit ?? 10_000,
  drain: Duration.toMillis(options.drain ?? "5 seconds")
})

export type Policy = ReturnType<typeof of>

/** The longest time that a receiver can ask for by `Retry-After`. */
const LONGEST = Duration.toMillis("24 hours")

/** Milliseconds until the next attempt after so many failed ones; undefined if there is none. */
export const pauseAfter = ({ pauses }: Policy, attempts: number, retryAfter = 0): Effect.Effect<number | undefined> =>
  Effect.map(Random.next, (random) => {
    const pause = pauses[attempts - 1]
    return pause === undefined ? undefined : Math.ceil(Math.max(pause * (0.9 + random / 5), Math.min(retryAfter, LONGEST)))
  })

/** Milliseconds for which a receiver wants nothing: 429 and 503 may name a time. */
export const rest = (status: number, retryAfter = 0): number => (status === 429 || status === 503 ? Math.min(retryAfter, LONGEST) : 0)
