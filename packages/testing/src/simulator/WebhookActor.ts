/** Administrators of webhooks: they add, change, disable, enable and remove them, make new secrets, and send dead letters again. */
import { Deliveries, Notices, Webhooks } from "@millrace/core"
import { Effect, Exit, Option, Redacted } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { Host } from "./Host.ts"
import type { LogRecorder } from "./LogRecorder.ts"
import { tagOf } from "./Records.ts"
import { nonEmpty, pickAny, pickHost, type Simulation } from "./Simulation.ts"

/** Webhooks that a simulation has at once. */
const LIMIT = 3

type Service = Webhooks.Webhooks["Service"]

/** The address of a receiver by its name. */
export const urlOf = (receiver: string): string => `https://${receiver}.example/`

/** Uses the webhooks of a host, and notes the result. */
export const perform = <A, E extends { readonly _tag: string }>(
  { world }: Simulation,
  host: Host,
  what: string,
  use: (webhooks: Service) => Effect.Effect<A, E>
) => {
  const service = Effect.map(Effect.serviceOption(Webhooks.Webhooks), Option.getOrThrow)
  return Effect.tap(Effect.exit(host.request(Effect.flatMap(service, use))), (exit) =>
    Effect.sync(() => world.note("webhooks", `${what} at ${host.name}: ${Exit.isSuccess(exit) ? "ok" : tagOf(exit)}`))
  )
}

/** The ids of the webhooks in the log, and of those that were not removed. */
export const idsIn = ({ webhooks }: LogRecorder) => {
  const all = [...webhooks.keys()]
  return { all, present: all.filter((id) => webhooks.get(id)?.at(-1)?.event._tag !== "WebhookRemoved") }
}

/** Does one thing at some host. */
export const act = (simulation: Simulation, random: SeededRandom): Effect.Effect<unknown> =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const host = pickHost(simulation, random)
    const { present } = idsIn(simulation.records.recorder)
    const id = pickAny(random, present)
    const choice = random.below(16)
    if (host === undefined) return Effect.void
    if (id === undefined || (choice < 4 && present.length < LIMIT)) return add(simulation, host, random)
    return change(simulation, host, id, choice, random)
  })

/** All notices, or some of them. */
const drawNames = (random: SeededRandom): ReadonlyArray<string> | undefined => {
  const some = random.shuffle(Notices.NAMES).slice(0, 1 + random.below(Notices.NAMES.length))
  return random.chance(0.5) ? undefined : some
}

const add = (simulation: Simulation, host: Host, random: SeededRandom) => {
  const { accounts, receivers, records } = simulation
  const receiver = receivers.newName()
  const names = drawNames(random)
  const accountId = random.pick(nonEmpty(accounts))
  const isOfOne = random.chance(0.3)
  const added = { url: urlOf(receiver), ...(names === undefined ? {} : { names }), ...(isOfOne ? { accountId } : {}) }
  const reason = `adds ${receiver}`
  return Effect.tap(
    perform(simulation, host, reason, (webhooks) => webhooks.add(added, { actor: "administrator", reason })),
    (exit) => Effect.sync(() => Exit.isSuccess(exit) && records.secrets.told.set(reason, Redacted.value(exit.value.secret)))
  )
}

const change = (simulation: Simulation, host: Host, id: string, choice: number, random: SeededRandom): Effect.Effect<unknown> => {
  const { receivers, records } = simulation
  const as = (reason: string) => ({ actor: "administrator", reason })
  switch (choice) {
    case 4: {
      const receiver = receivers.newName()
      const reason = `changes ${id} to ${receiver}`
      return perform(simulation, host, reason, (webhooks) => webhooks.change(id, { url: urlOf(receiver) }, as(reason)))
    }
    case 5:
    case 6: {
      const names = drawNames(random) ?? null
      return perform(simulation, host, `changes the names of ${id}`, (webhooks) => webhooks.change(id, { names }, as("names")))
    }
    case 7:
    case 8: {
      const reason = `rotates ${id} for ${receivers.newName()}`
      const overlap = random.pick([0, 60_000, 86_400_000])
      return Effect.tap(
        perform(simulation, host, reason, (webhooks) => webhooks.rotate(id, overlap, as(reason))),
        (exit) => Effect.sync(() => Exit.isSuccess(exit) && records.secrets.told.set(reason, Redacted.value(exit.value)))
      )
    }
    case 9:
    case 10:
      return perform(simulation, host, `disables ${id}`, (webhooks) => webhooks.disable(id, "host", as("disables")))
    case 11:
    case 12:
      return perform(simulation, host, `enables ${id}`, (webhooks) => webhooks.enable(id, {}, as("enables")))
    case 13:
      return perform(simulation, host, `enables ${id} and skips`, (webhooks) => webhooks.enable(id, { skip: true }, as("skips")))
    case 14:
      return perform(simulation, host, `removes ${id}`, (webhooks) => webhooks.remove(id, as("removes")))
    default:
      return Effect.exit(host.request(Deliveries.resendAll(id)))
  }
}
