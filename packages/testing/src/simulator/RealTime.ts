/**
 * The real world around a simulation. Promises that settle by themselves belong to the simulation: they are awaited before simulated time
 * passes. Whatever a real timer, socket or file makes ready does not, for its time is not decided by the seed.
 */
import { setImmediate, setTimeout } from "node:timers/promises"
import type { World } from "./World.ts"

/** Rounds in which promises and callbacks of `process.nextTick` may settle: each settles all that are ready. */
const ROUNDS = 16
/** How long to wait for a device or a timer that is in use: milliseconds in one simulation. */
const PATIENCE = 1_000
/** Waits for something of which Node.js shows nothing, such as a thread of its own: how many, and how long each is, milliseconds. */
const GUESSES = 3
const GUESS = 10

/** Counts of the timers, sockets and other devices that this process uses, by type. */
type Resources = ReadonlyMap<string, number>

const resourcesInUse = (): Resources => {
  const counts = new Map<string, number>()
  for (const type of process.getActiveResourcesInfo()) counts.set(type, (counts.get(type) ?? 0) + 1)
  return counts
}

/** What resources are called, by their types in Node.js. */
const NAMES: ReadonlyArray<readonly [RegExp, string]> = [
  [/^Timeout|^Immediate/u, "a timer"],
  [/^FS|File|CloseReq/u, "a file"],
  [/^GetAddrInfo|^GetNameInfo|^Query/u, "a look-up of a name"],
  [/^Process/u, "a process"],
  [/TCP|TLS|UDP|Pipe|HTTP/u, "a socket"]
]

const nameOf = (type: string): string => NAMES.find(([pattern]) => pattern.test(type))?.[1] ?? type

/** A type of which there are more in one count than in another. */
const moreIn = (counts: Resources, than: Resources): string | undefined => {
  for (const [type, count] of counts) if (count > (than.get(type) ?? 0)) return nameOf(type)
  return undefined
}

export class RealTime {
  readonly #world: World
  /** In use before the simulation began. */
  readonly #before = resourcesInUse()
  /** Steps of the workload until promises settled last. */
  #settledAt = 0
  #patience = PATIENCE
  #guesses = GUESSES

  constructor(world: World) {
    this.#world = world
  }

  /** Lets promises settle that need no time, unless nothing of the workload has run since they settled last. */
  async settleIfStepped(): Promise<void> {
    if (this.#settledAt !== this.#world.userSteps) await this.#settle()
  }

  /** Lets the real world act once, as a long simulation must not keep its process from everything else. */
  async pass(): Promise<void> {
    await this.#settle()
    await setImmediate()
  }

  /**
   * Waits while work of the workload uses timers or devices of the real world, which would make a fiber ready sooner or later. Returns what it
   * uses, such as `a timer`.
   */
  async awaitDevices(): Promise<string | undefined> {
    const isUsed = () => moreIn(resourcesInUse(), this.#before) !== undefined
    if (isUsed()) return this.#wait(isUsed)
    return this.#guesses-- > 0 ? this.#wait(GUESS) : undefined
  }

  /** Waits for whatever may still come when every fiber waits. Returns what it was. */
  async awaitAnything(): Promise<string | undefined> {
    await this.#settle()
    return this.#world.isIdle ? this.#wait(PATIENCE) : undefined
  }

  async #settle(): Promise<void> {
    this.#settledAt = this.#world.userSteps
    this.#world.turn = "promises"
    for (let round = 0; round < ROUNDS; round++) await new Promise<void>((resolve) => process.nextTick(resolve))
    this.#world.turn = undefined
  }

  /** Waits until a fiber is woken: so many milliseconds, or while this is true. Returns what woke it, as far as Node.js shows. */
  async #wait(until: number | (() => boolean)): Promise<string | undefined> {
    const used = moreIn(resourcesInUse(), this.#before)
    let last = resourcesInUse()
    const goesOn = (waited: number) => (typeof until === "number" ? waited < until : until() && this.#patience-- > 0)
    for (let waited = 0; goesOn(waited) && this.#world.wokenFromOutside === undefined; waited++) {
      last = resourcesInUse()
      await setTimeout(1)
    }
    return used ?? moreIn(last, resourcesInUse())
  }
}
