/**
 * The final phase of verification codes: faults have ended, so a message that comes to one host ends a wait at another. A day later no text is
 * left.
 */
import { Vault } from "@millrace/core"
import { Effect, Exit, Fiber } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { call, requestOf } from "../Callers.ts"
import { dataOf } from "../Records.ts"
import { nonEmpty, type Simulation } from "../Simulation.ts"
import { deliver, newText, waitFor } from "./Actor.ts"
import { NUMBERS } from "./Endpoints.ts"

/** The longest time until a caller who waits for a message is told its code, milliseconds. */
const TOLD_WITHIN = 3_000

export const settle = (simulation: Simulation, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (simulation.codes === 0) return
    for (const accountId of simulation.accounts) yield* awaitCode(simulation, accountId, random.fork(accountId))
    yield* nameTexts(simulation, random)
  })

/** The first message that matches ends the wait, at whatever host it arrives; others do not. */
const awaitCode = (simulation: Simulation, accountId: string, random: SeededRandom) =>
  Effect.gen(function* () {
    const { report, world } = simulation
    const hosts = nonEmpty(simulation.hosts)
    const number = random.pick(NUMBERS)
    const input = waitFor("acme", number, 60)
    const intent = { accountId, operation: "verification.wait", input, request: requestOf("verification.wait", input) }
    const waiting = yield* Effect.forkChild(call(simulation, random.pick(hosts), intent, random))
    yield* Effect.sleep(2_000)
    const bring = (service: string, hasCode: boolean, to: string = number) => {
      const text = newText(simulation, service, to, hasCode)
      return Effect.as(
        Effect.tap(deliver(simulation, random.pick(hosts), text), (told) =>
          Effect.sync(() => told !== "taken" && report(`${text.id} is not taken after faults have ended: ${told}`))
        ),
        text
      )
    }
    const other = NUMBERS.find((one) => one !== number)
    yield* bring("Brewery", true)
    yield* bring("Acme", false)
    yield* bring("Acme", true, other)
    const first = yield* bring("Acme", true)
    const since = world.now
    yield* bring("Acme", true)
    const answered = yield* Fiber.join(waiting)
    // A caller without credits does not wait
    if (answered?.response === undefined || Exit.isFailure(answered.response.answer)) return
    const data = dataOf(answered)
    if (data.code !== first.code) report(`${answered.requestId} was told the code ${data.code}, but ${first.code} came first`)
    if (answered.response.at - since > TOLD_WITHIN)
      report(`${answered.requestId} was told its code ${answered.response.at - since} ms late`)
  })

/** Learns how the log names the messages. */
const nameTexts = ({ hosts, records }: Simulation, random: SeededRandom) =>
  Effect.gen(function* () {
    const { hmac } = yield* Effect.orDie(random.pick(nonEmpty(hosts)).request(Vault.Vault))
    for (const { message } of records.textings) records.textIds.set(message.id, hmac("sms", JSON.stringify(["host", message.id])))
  })

/** More than a day later: neither a text nor a key of an hour is left. */
export const checkForgotten = ({ codes, report, states, world }: Simulation) =>
  Effect.gen(function* () {
    if (codes === 0) return
    // Keys are destroyed each hour
    for (let hours = 0; hours < 26; hours++) {
      world.skip(3_600_000)
      yield* Effect.sleep(1_000)
    }
    for (const { key } of yield* Effect.orDie(states.list("sms", { limit: 100_000 }))) report(`the text ${key} is left`)
    for (const { key } of yield* Effect.orDie(states.list("vaultKeys", { limit: 100_000 })))
      if (key.startsWith("sms:")) report(`the key ${key} is left`)
  })
