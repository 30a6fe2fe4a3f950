/** People at simulated hosts: the operations on their keys, which are free, and the relay that brings their mail. */
import { Keys, MailNotSent, MailRelay, type Operation } from "@millrace/core"
import { Effect, Layer } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import type { World } from "../World.ts"

/** The operations, with their first prices in thousandths of a credit. */
export const OFFERS: ReadonlyArray<{ readonly operation: Operation.Any; readonly price: number }> = [
  { operation: Keys.list, price: 0 },
  { operation: Keys.issue, price: 0 },
  { operation: Keys.rotate, price: 0 },
  { operation: Keys.revoke, price: 0 }
]

/** A mail that came to a person. */
export interface Mail {
  /** Of the browser that asked for it. */
  readonly asked: string
  /** Of the link. */
  readonly token: string
}

/** A page of the host, with the name of whoever asked. */
export const linkOf = (asked: string) => (token: string) => `https://host.example/${asked}#${token}`

const LINK = /https:\/\/host\.example\/(?<asked>\S+)#(?<token>\S+)/u

/** The relay of a world. It refuses mail, loses it, or brings it although the answer is lost. */
export class SimulatedRelay {
  /** Oldest first. */
  readonly mails: Array<Mail> = []
  readonly #world: World
  readonly #random: SeededRandom
  readonly #rate: () => number

  constructor(world: World, random: SeededRandom, rate: () => number) {
    this.#world = world
    this.#random = random
    this.#rate = rate
  }

  readonly layer: Layer.Layer<MailRelay> = Layer.sync(MailRelay, () => ({
    configured: Effect.void,
    send: ({ text, to }) =>
      Effect.suspend(() => {
        const { asked, token } = LINK.exec(text)?.groups ?? {}
        if (asked === undefined || token === undefined) return Effect.die(new Error("A mail has its link"))
        const fault = this.#random.chance(this.#rate()) ? this.#random.pick(["refused", "lost", "answer lost"] as const) : "fine"
        this.#world.note("relay", `mail to ${to} for ${asked}: ${fault}`)
        const arrive = Effect.sync(() => void this.mails.push({ asked, token }))
        const away = Effect.fail(new MailNotSent({ reason: fault }))
        const delay = this.#random.below(this.#random.pick([20, 5_000]))
        if (fault === "refused") return Effect.delay(away, delay)
        if (fault === "lost") return Effect.sleep(delay)
        return Effect.andThen(Effect.delay(arrive, delay), fault === "fine" ? Effect.void : away)
      })
  }))
}
