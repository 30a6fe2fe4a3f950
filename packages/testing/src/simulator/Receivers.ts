/** The receivers of webhooks, outside all hosts. They refuse, fail, ask for patience, lose their answers, and are down for a while. */
import { type WebhookAnswer, type WebhookMessage, WebhookNotSent, type WebhookSender } from "@millrace/core"
import { Context, Effect } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { Post } from "./Records.ts"
import type { Process, World } from "./World.ts"

/**
 * - `refused`: nothing listens
 * - `down`: nothing listens, from now on and for a while
 * - `failed`: it answers a status of failure
 * - `busy`: it answers 429 or 503, with a `Retry-After`
 * - `gone`: it answers 410
 * - `hung`: it gets the message, and never answers
 * - `answerLost`: it accepts the message, but the answer is lost
 */
const FAULTS = [
  ...(["refused", "refused", "down", "failed", "failed", "failed", "busy", "busy", "hung", "answerLost", "answerLost"] as const),
  ...(["refused", "failed", "answerLost", "gone"] as const)
] as const

/** How long a sender waits for an answer, milliseconds. */
export const TIME_LIMIT = 15_000

const answer = (status: number, retryAfter?: number): WebhookAnswer => ({ status, retryAfter })
const notSent = (reason: string) => Effect.fail(new WebhookNotSent({ reason }))

interface Options {
  readonly world: World
  readonly random: SeededRandom
  /** Gets every message. */
  readonly posts: Array<Post>
  /** Probability of a fault now; 0 once faults have ended. */
  readonly rate: () => number
}

export class Receivers {
  readonly #options: Options
  /** Until when the receiver at an address is down: milliseconds since 1970. */
  readonly #downUntil = new Map<string, number>()
  #names = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** The name of a new receiver. */
  newName(): string {
    return `r${this.#names++}`
  }

  /** How a host reaches the receivers. */
  senderOf(process: Process): WebhookSender["Service"] {
    const { world } = this.#options
    const late = { duration: TIME_LIMIT, orElse: () => notSent("it exceeds the time limit") } as const
    return {
      check: () => Effect.void,
      send: (message) =>
        Effect.timeoutOrElse(
          world.outside.ask(
            process,
            Effect.suspend(() => this.#receive(process, message)),
            Context.empty()
          ),
          late
        )
    }
  }

  #receive(process: Process, message: WebhookMessage): Effect.Effect<WebhookAnswer, WebhookNotSent> {
    const { posts, random, rate, world } = this.#options
    const post: Post = { ...message, process, sentAt: world.now, accepted: false }
    posts.push(post)
    const isFaulty = random.chance(rate())
    const drawn = random.pick(FAULTS)
    const isDown = rate() > 0 && (this.#downUntil.get(message.url) ?? 0) > world.now
    const fault = isDown ? "refused" : isFaulty ? drawn : "fine"
    world.note("receiver", `${message.url} gets ${message.id} from ${process.name}: ${fault}`)
    const accept = Effect.sync(() => {
      post.accepted = true
    })
    const takes = random.below(random.pick([20, 400, 6_000]))
    const lasts = random.below(random.pick([30_000, 600_000, 7_200_000]))
    const status = random.pick([302, 400, 404, 500, 502])
    switch (fault) {
      case "fine":
        return Effect.as(Effect.delay(accept, takes), answer(random.pick([200, 202, 204])))
      case "down":
        this.#downUntil.set(message.url, world.now + lasts)
        return notSent(fault)
      case "refused":
        return notSent(fault)
      case "failed":
        return Effect.delay(Effect.succeed(answer(status)), takes)
      case "busy":
        return Effect.delay(Effect.succeed(answer(random.pick([429, 503]), Math.min(lasts, 300_000))), takes)
      case "gone":
        return Effect.delay(Effect.succeed(answer(410)), takes)
      case "hung":
        return Effect.never
      case "answerLost":
        return Effect.andThen(Effect.delay(accept, takes), notSent(fault))
    }
  }
}
