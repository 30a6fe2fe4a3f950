/**
 * The links between the hosts of a simulation of which one leads each account. Messages take their time. A link breaks before a call is
 * sent, on its way there, while it runs, or on the way back; the two hosts learn of it at different times. A host that saw a link break
 * reckons without the other one for a while, and hosts learn late who came, so they disagree about who leads.
 */
import { crc32 } from "node:zlib"
import { Charge, LedCharge } from "@millrace/core"
import { Effect, Layer } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { Faults } from "./Faults.ts"
import type { SimulatedOperation } from "./Workload.ts"
import type { Process, World } from "./World.ts"

/** Where a link breaks under a call. */
const BREAKS = ["before it is sent", "on its way", "while it runs", "on the way back"] as const

/** Milliseconds until a host sees that a link is broken, at most: the silence after which a real link counts as broken. */
const SEEN_WITHIN = 3_000
/** Milliseconds for which a host reckons without another to which its link broke, at most. */
const WITHOUT = 10_000
/** Milliseconds until a host sees another that came, at most. */
const KNOWN_WITHIN = 5_000
/** How long a host that stops lets calls end, then how long it waits for those it interrupted: seconds. */
const GRACE = 30
const LAST_ENDS = 5

/** A host as the others see it. */
interface Member {
  readonly process: Process
  readonly run: LedCharge.Run
  /** What interrupts each call that came from others. */
  readonly running: Set<() => void>
  isLeaving: boolean
}

type Told = (outcome: LedCharge.Outcome) => void

interface Options {
  readonly world: World
  readonly random: SeededRandom
  readonly faults: Pick<Faults, "delay" | "links">
  readonly isOver: () => boolean
}

export class Links {
  readonly #options: Options
  readonly #members = new Map<Process, Member>()
  /** By the two hosts: milliseconds since 1970 from which on the first sees the second. */
  readonly #seenFrom = new Map<string, number>()
  #calls = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** Puts the leaders of accounts before the `Charge` of a process. */
  leading(process: Process, operations: ReadonlyArray<SimulatedOperation>) {
    const charge = Effect.gen({ self: this }, function* () {
      const { over, run } = yield* LedCharge.make(operations)
      const member: Member = { process, run, running: new Set(), isLeaving: false }
      yield* Effect.acquireRelease(
        Effect.sync(() => this.#join(member)),
        () => leave(member)
      )
      return over({ leaderOf: (accountId) => this.#leaderOf(process, accountId) })
    })
    return Layer.effect(Charge.Charge, charge)
  }

  /** What becomes of a call whose link breaks after it was sent. A test may plant a mistake here. */
  afterBreak(): LedCharge.Outcome {
    return { _tag: "Lost" }
  }

  #join(member: Member): void {
    const { random, world } = this.#options
    const own = random.fork(`${member.process.name} joins`)
    for (const { name } of this.#members.keys()) {
      this.#seenFrom.set(`${name} ${member.process.name}`, world.now + own.below(KNOWN_WITHIN))
      this.#seenFrom.set(`${member.process.name} ${name}`, world.now + own.below(KNOWN_WITHIN))
    }
    this.#members.set(member.process, member)
  }

  #leaderOf(here: Process, accountId: string) {
    const { world } = this.#options
    let leader: Member | undefined
    let highest = -1
    for (const member of this.#members.values()) {
      const { alive, name } = member.process
      const isSeen = alive && !member.isLeaving && (this.#seenFrom.get(`${here.name} ${name}`) ?? 0) <= world.now
      const weight = crc32(`${name} ${accountId}`)
      if ((member.process === here || isSeen) && weight > highest) [leader, highest] = [member, weight]
    }
    if (leader === undefined || leader.process === here) return undefined
    const to = leader
    return { call: (call: LedCharge.Forwarded, patience: number, told: Told) => this.#call(here, to, call, patience, told) }
  }

  #call(from: Process, to: Member, call: LedCharge.Forwarded, patience: number, told: Told): (() => void) | undefined {
    const { faults, isOver, random, world } = this.#options
    const own = random.fork(`call ${this.#calls++}`)
    const broken = !isOver() && own.chance(faults.links) ? own.pick(BREAKS) : undefined
    const { requestId } = call.caller
    world.note(from.name, `forwards ${requestId} to ${to.process.name}${broken === undefined ? "" : `; the link breaks ${broken}`}`)
    const way = () => own.below(faults.delay + 1)
    let isTold = false
    const tell = (what: string, outcome: LedCharge.Outcome, millis: number) =>
      world.sleep(world.outside, millis, () =>
        world.schedule(from, () => {
          if (isTold) return
          isTold = true
          world.note(from.name, `hears that ${requestId} ${what}`)
          told(outcome)
        })
      )
    const lost = (millis: number) => {
      this.#seenFrom.set(`${from.name} ${to.process.name}`, world.now + millis + own.below(WITHOUT))
      tell("is lost", this.afterBreak(), millis)
    }
    if (broken === "before it is sent") {
      this.#seenFrom.set(`${from.name} ${to.process.name}`, world.now + own.below(WITHOUT))
      tell("was not sent", { _tag: "NotBegun" }, way())
      return () => (isTold = true)
    }
    tell("is lost", this.afterBreak(), patience)
    if (broken === "on its way") {
      lost(own.below(SEEN_WITHIN))
      return () => (isTold = true)
    }
    const ended = (outcome: LedCharge.Outcome, what: string) => {
      if (broken === "on the way back") lost(own.below(SEEN_WITHIN))
      else if (broken === undefined) tell(what, outcome, way())
    }
    const cancel = this.#arrive(to, call, { from, ended, isGone: () => lost(own.below(SEEN_WITHIN)), after: way() })
    if (broken === "while it runs") {
      const breaks = own.below(own.pick([100, 3_000]))
      lost(breaks + own.below(SEEN_WITHIN))
      world.sleep(world.outside, breaks + own.below(SEEN_WITHIN), cancel)
    }
    return () => {
      isTold = true
      world.sleep(world.outside, way(), cancel)
    }
  }

  /** Runs a call at the other host. Returns what interrupts it there; either host that dies breaks the link. */
  #arrive(
    to: Member,
    call: LedCharge.Forwarded,
    {
      after,
      ended,
      from,
      isGone
    }: {
      readonly from: Process
      readonly after: number
      readonly ended: (outcome: LedCharge.Outcome, what: string) => void
      readonly isGone: () => void
    }
  ): () => void {
    const { world } = this.#options
    const { process, run, running } = to
    let interrupt: (() => void) | undefined
    let isStopped = false
    let isOver = false
    const stop = () =>
      world.schedule(process, () => {
        isStopped = true
        interrupt?.()
      })
    const forgetThere = process.onExit(() => isOver || isGone())
    const forgetHere = from.onExit(stop)
    const over = (outcome: LedCharge.Outcome, what: string) => {
      isOver = true
      running.delete(stop)
      forgetThere()
      forgetHere()
      ended(outcome, what)
    }
    running.add(stop)
    const begin = () => {
      if (isOver) return
      if (isStopped || to.isLeaving) return over({ _tag: "NotBegun" }, "was refused")
      interrupt = run(JSON.parse(JSON.stringify(call)), (end) =>
        over({ _tag: "Ended", ended: JSON.parse(JSON.stringify(end)) }, "has ended")
      )
      if (interrupt === undefined) over({ _tag: "NotBegun" }, "was refused")
    }
    world.sleep(world.outside, after, () => world.schedule(process, begin))
    return stop
  }
}

/** Begins nothing more, and lets the calls under way end; interrupts them in the end. */
const leave = (member: Member): Effect.Effect<void> => {
  const idle = (seconds: number) =>
    Effect.gen(function* () {
      for (let waited = 0; waited < seconds * 10 && member.running.size > 0; waited++) yield* Effect.sleep(100)
    })
  return Effect.gen(function* () {
    member.isLeaving = true
    yield* idle(GRACE)
    for (const interrupt of [...member.running]) interrupt()
    yield* idle(LAST_ENDS)
  })
}
