/**
 * The final phase of people: faults have ended. At each host someone signs up, uses the trial up, proves the address, signs out; and keys are
 * taken at every host until they end, and at none from then on.
 */
import { Registration } from "@millrace/core"
import { Effect, Exit } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import type { Host } from "../Host.ts"
import { skip } from "../Leaps.ts"
import { tagOf } from "../Records.ts"
import { nonEmpty, type Simulation } from "../Simulation.ts"
import * as Keys from "./Keys.ts"
import type { KnownKey, KnownSession } from "./People.ts"
import * as Visits from "./Visits.ts"

/** Calls of a trial. */
const TRIAL = 10

/** What an address brings when it is proved, in thousandths of a credit. */
const SIGN_UP = 200_000

/** Seconds for which a replaced key can still be used. */
const OVERLAP = 60

const HOUR = 3_600_000

/** Milliseconds by which a key is looked at before and after its end. */
const MARGIN = 5_000

export const settle = (simulation: Simulation, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (simulation.people === 0) return
    for (const host of simulation.hosts) yield* live(simulation, host, random.fork(host.name))
  })

/** A whole life of someone who signs up at this host. */
const live = (simulation: Simulation, host: Host, random: SeededRandom) =>
  Effect.gen(function* () {
    const { relay, report } = simulation
    const address = `${host.name}@calm.example`
    const signed = yield* Visits.signUp(simulation, address, address, random, host)
    if (signed === undefined) return report(`nobody can sign up at ${host.name} after faults have ended`)
    yield* everywhere(simulation, signed, "in", random)
    yield* useTrial(simulation, signed.account, random)
    const mail = relay.mails.find(({ asked }) => asked === signed.asked)
    const admitted = mail && (yield* Visits.follow(simulation, mail, signed.asked, signed, random, host))
    if (mail === undefined || admitted === undefined) return report(`the link of ${signed.asked} does not admit at ${host.name}`)
    if (admitted.account !== signed.account) report(`${address} signed up as ${signed.account}, and is ${admitted.account}`)
    yield* everywhere(simulation, signed, "out", random)
    yield* everywhere(simulation, admitted, "in", random)
    const granted = simulation.records.recorder.accountEvents.flatMap(({ event, stream }) =>
      event._tag === "CreditsGranted" && stream === `account-${signed.account}` ? [event.amount] : []
    )
    if (granted.length !== 1 || granted[0] !== SIGN_UP) report(`${address} was granted ${granted.join(", ")} for its sign-up`)
    yield* useKeys(simulation, admitted.account, random)
    yield* Visits.signOutEverywhere(simulation, admitted.account, random, host)
    yield* everywhere(simulation, admitted, "out", random)
    yield* checkAddress(simulation, address, admitted.account)
    yield* comeLate(simulation, address, random)
  })

/** A link can be used for 15 minutes. */
const LINK = 15 * 60_000

/** A link is good just before its end, and not from then on. */
const comeLate = (simulation: Simulation, address: string, random: SeededRandom) =>
  Effect.gen(function* () {
    const { asks } = simulation.records.people
    const before = asks.size
    for (const _ of [1, 2]) yield* Visits.signIn(simulation, address, address, random)
    const [first, second] = [`b${before}`, `b${before + 1}`]
    const mailTo = (name: string) => simulation.relay.mails.find(({ asked }) => asked === name)
    const [early, late] = [mailTo(first), mailTo(second)]
    if (early === undefined || late === undefined) return simulation.report(`${address} got no links after faults have ended`)
    const asked = asks.get(first)?.at ?? 0
    skip(simulation, Math.max(0, asked + LINK - MARGIN - simulation.world.now))
    const admitted = yield* Visits.follow(simulation, early, first, undefined, random)
    if (admitted === undefined) simulation.report(`the link of ${first} was refused before its end`)
    skip(simulation, 2 * MARGIN + simulation.faults.skew)
    yield* Visits.follow(simulation, late, second, admitted, random)
  })

/** Every host answers alike. */
const everywhere = (simulation: Simulation, session: KnownSession, expected: "in" | "out", random: SeededRandom) =>
  Effect.gen(function* () {
    for (const host of simulation.hosts) {
      const told = yield* Visits.visit(simulation, session, random, host)
      if (told !== expected) simulation.report(`${session.session} is told ${told} at ${host.name}, not ${expected}`)
    }
  })

/** Ten calls are free, at whichever hosts, and the next is refused. */
const useTrial = (simulation: Simulation, accountId: string, random: SeededRandom) =>
  Effect.gen(function* () {
    const { hosts, records, report, workload } = simulation
    const offer = workload.offers.find(({ operation, price }) => operation._tag === "Call" && price > 0)
    if (offer === undefined) return
    const before = records.calls.length
    // Two at once at the end, of which one is too many
    for (let calls = 0; calls < TRIAL + 1; calls += calls === TRIAL - 1 ? 2 : 1) {
      const callers = calls === TRIAL - 1 ? [0, 1] : [0]
      const once = (i: number) => {
        const own = random.fork(`trial ${calls} ${i}`)
        return Keys.callAs(simulation, accountId, offer.operation.key, offer.input(own, []), own, own.pick(nonEmpty(hosts)))
      }
      yield* Effect.forEach(callers, once, { concurrency: "unbounded" })
    }
    const answers = records.calls.slice(before).filter(({ intent }) => intent.accountId === accountId)
    const done = answers.filter(({ response }) => response !== undefined && Exit.isSuccess(response.answer))
    const refused = answers.filter(({ response }) => response !== undefined && tagOf(response.answer) === "TrialUsedUp")
    const used = records.recorder.accountEvents.filter(
      ({ event, stream }) => event._tag === "TrialUsed" && stream === `account-${accountId}`
    )
    // An administrator may have made the operation free, which uses nothing up; an operation may refuse its input
    if (used.length === 0 || done.length + refused.length < answers.length) return
    if (used.length !== TRIAL || done.length !== TRIAL)
      report(`${accountId} used ${used.length} calls of its trial: ${done.length} were answered, and ${refused.length} refused`)
  })

/** A key that expires, one that is replaced, and one that is revoked. */
const useKeys = (simulation: Simulation, account: string, random: SeededRandom) =>
  Effect.gen(function* () {
    const { report, world } = simulation
    const issued = yield* Keys.issueKey(simulation, account, 2 * OVERLAP * 1_000, random)
    // The key that takes its place has its expiry
    const first = yield* Keys.issueKey(simulation, account, HOUR, random)
    const next = first && (yield* Keys.rotateKey(simulation, first, OVERLAP, random))
    if (issued === undefined || first === undefined || next === undefined) return report(`${account} cannot issue and rotate its keys`)
    const rotatedAt = world.now
    for (const key of [issued, first, next]) yield* doors(simulation, key, "in", random)
    yield* Effect.sleep(OVERLAP * 1_000 - MARGIN - (world.now - rotatedAt))
    yield* doors(simulation, first, "in", random)
    yield* Effect.sleep(2 * MARGIN)
    yield* doors(simulation, first, "out", random)
    yield* doors(simulation, next, "in", random)
    yield* doors(simulation, issued, "in", random)
    yield* Effect.sleep(OVERLAP * 1_000)
    yield* doors(simulation, issued, "out", random)
    yield* Keys.revokeKey(simulation, next, random)
    yield* doors(simulation, next, "out", random)
  })

/** Every host answers a key alike, and takes no other text for it. */
const doors = (simulation: Simulation, key: KnownKey, expected: "in" | "out", random: SeededRandom) =>
  Effect.gen(function* () {
    for (const host of simulation.hosts) {
      const told = yield* Keys.comeWithKey(simulation, key, random, host, true)
      if (told !== expected) simulation.report(`the key ${key.key} is told ${told} at ${host.name}, not ${expected}`)
      yield* Keys.comeWithKey(simulation, key, random, host, false)
    }
  })

/** The address is claimed for its account, and for no other. */
const checkAddress = ({ hosts, report }: Simulation, address: string, accountId: string) =>
  Effect.gen(function* () {
    for (const host of hosts) {
      const found = yield* Effect.exit(host.request(Effect.flatMap(Registration, ({ find }) => find(address))))
      if (Exit.isFailure(found) || found.value !== accountId) report(`${host.name} does not find ${address} as ${accountId}`)
    }
  })
