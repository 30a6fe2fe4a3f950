/** Callers who wait for verification codes, and providers that bring text messages to hosts, more often than once. */
import { SmsReceiver } from "@millrace/core"
import { Effect, Exit, Option } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { callWithRetries, requestOf } from "../Callers.ts"
import type { Host } from "../Host.ts"
import { type Delivered, type Intent, type TextMessage, tagOf } from "../Records.ts"
import { nonEmpty, pickHost, type Simulation } from "../Simulation.ts"
import { NUMBERS } from "./Endpoints.ts"

const SERVICES = ["Acme", "Brewery", "Cinema"] as const

/** The input of a wait. */
export const waitFor = (identifier: string, number: string, timeout: number, since?: number) => ({
  ...{ source: "sms", identifier, phone_number: number, timeout },
  ...(since === undefined ? {} : { since: new Date(since).toISOString() })
})

/** Does one thing. Adds what callers want under a key to `intents`. */
export const act = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom): Effect.Effect<unknown> =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const number = random.pick(NUMBERS)
    const service = random.pick(SERVICES)
    if (random.chance(0.5)) return bring(simulation, newText(simulation, service, number, random.chance(0.8)), random)
    const since = random.chance(0.3) ? simulation.world.now - random.below(120_000) : undefined
    const input = waitFor(service.toLowerCase(), number, random.pick([15, 30, 60, 120]), since)
    const key = random.chance(simulation.keys) ? { key: `k${intents.length}` } : {}
    const operation = "verification.wait"
    const intent = { accountId: random.pick(nonEmpty(simulation.accounts)), operation, input, request: requestOf(operation, input), ...key }
    intents.push(intent)
    return callWithRetries(simulation, intent, random)
  })

/** A message that no provider brought before. No two have the same code. */
export const newText = ({ serial }: Simulation, service: string, to: string, hasCode: boolean): TextMessage => {
  const n = serial()
  const code = hasCode ? `${100_000 + n}` : undefined
  return {
    id: `text ${n}`,
    from: service,
    to,
    code,
    text: code === undefined ? `${service} is open today.` : `Your ${service} code is ${code}.`
  }
}

/** Brings a message until a host has it, and sometimes again; sometimes to two hosts at once. */
const bring = (simulation: Simulation, message: TextMessage, random: SeededRandom): Effect.Effect<unknown> => {
  const attempts = Effect.fnUntraced(function* (own: SeededRandom) {
    for (let attempt = 0; attempt < 5 && !simulation.isOver(); attempt++) {
      const host = pickHost(simulation, own)
      const told = host && (yield* deliver(simulation, host, message))
      if (told === "taken" && !own.chance(0.2)) return
      yield* Effect.sleep(own.below(own.pick([50, 2_000, 60_000])))
    }
  })
  const providers = random.chance(0.2) ? [0, 1] : [0]
  return Effect.forEach(providers, (i) => attempts(random.fork(`provider ${i}`)), { concurrency: "unbounded", discard: true })
}

/** Brings a message to a host as a provider's hook does. Returns what the provider is told; undefined if the host is down. */
export const deliver = (simulation: Simulation, host: Host, message: TextMessage): Effect.Effect<string | undefined> =>
  Effect.suspend((): Effect.Effect<string | undefined> => {
    const { records, world } = simulation
    if (host.process === undefined) return Effect.undefined
    const delivered: Delivered<TextMessage> = { message, startedAt: world.now, lengthBefore: records.recorder.length }
    records.textings.push(delivered)
    const { from, id, text, to } = message
    const receive = Effect.gen(function* () {
      const receiver = Option.getOrThrow(yield* Effect.serviceOption(SmsReceiver))
      yield* receiver.receive({ source: "host", id, from, to, text })
    })
    return Effect.map(Effect.exit(host.request(receive)), (exit) => {
      const told = Exit.isSuccess(exit) ? "taken" : (tagOf(exit) ?? "died")
      delivered.answer = { told, at: world.now, lengthAfter: records.recorder.length }
      world.note("texts", `${id} to ${to} at ${host.name}: ${told}`)
      return told
    })
  })
