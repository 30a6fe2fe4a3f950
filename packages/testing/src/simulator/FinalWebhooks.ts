/**
 * The final phase of webhooks: faults have ended, all are enabled, and dead letters are sent again. Then every receiver must have accepted
 * all that it was to get, and nothing is left of a webhook that was removed.
 */
import { Deliveries, Delivery, Vault } from "@millrace/core"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Exit, Stream } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import { noticesIn } from "./checkers/Notices.ts"
import { addressesIn, type Due, dueIn } from "./checkers/Webhooks.ts"
import type { Host } from "./Host.ts"
import { nonEmpty, type Simulation } from "./Simulation.ts"
import { idsIn, perform } from "./WebhookActor.ts"

const MINUTE = 60_000
const REASON = { actor: "administrator", reason: "faults have ended" }
/** The attempts of a delivery before it is given up: one more than the pauses that hosts are given. */
const ATTEMPTS = 4
/** Dead letters are kept for 30 days: of a month of skipped time the clocks of hosts may see less. */
const KEPT = 29 * 24 * 60 * MINUTE
/** The longest time until all is delivered: the longest pause, what receivers may ask for, and a lease. Milliseconds. */
const DELIVERED_WITHIN = 40 * MINUTE
const LOOK_EVERY = 20_000

export const settle = (simulation: Simulation, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { hosts, records, report } = simulation
    if (records.recorder.webhooks.size === 0) return
    const host = random.pick(nonEmpty(hosts))
    const { all, present } = idsIn(records.recorder)
    const removed = all.filter((id) => !present.includes(id))
    for (const id of present) {
      yield* checkDeadLetters(simulation, host, id)
      const exit = yield* perform(simulation, host, `enables ${id}`, (webhooks) => webhooks.enable(id, {}, REASON))
      if (Exit.isFailure(exit)) report(`${id} cannot be enabled after faults have ended`)
      yield* openSecrets(simulation, host, id)
    }
    for (const id of removed) yield* perform(simulation, host, `removes ${id}`, (webhooks) => webhooks.remove(id, REASON))
    for (const { told, webhook } of yield* undelivered(simulation, host, present)) report(`${webhook} never got ${told.id}`)
    yield* checkRemoved(simulation, removed)
  })

/** Waits until all that happened until now is delivered. Returns what is not delivered in time. */
const undelivered = ({ records, world }: Simulation, host: Host, present: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const log = yield* Effect.orDie(Stream.runCollect(records.recorder.store.readAll(EventStore.start)))
    const addresses = addressesIn(records)
    const isMissing = ({ told, webhook }: Due) => {
      const posts = records.posts.filter(({ id, url }) => id === told.id && addresses.get(url) === webhook)
      const isExpired = posts.length >= ATTEMPTS && world.now - (posts.at(-1)?.sentAt ?? 0) > KEPT
      return !isExpired && posts.every(({ accepted }) => !accepted)
    }
    let missing = dueIn(records, noticesIn(log)).filter(isMissing)
    for (let waited = 0; waited < DELIVERED_WITHIN && missing.length > 0; waited += LOOK_EVERY) {
      for (const id of present) yield* Effect.exit(host.request(Deliveries.resendAll(id)))
      yield* Effect.sleep(LOOK_EVERY)
      missing = missing.filter(isMissing)
    }
    return missing
  })

/** A delivery is given up after its last attempt, and not before. */
const checkDeadLetters = ({ records, report }: Simulation, host: Host, webhook: string) =>
  Effect.map(Effect.exit(host.request(Deliveries.dead(webhook, 1_000))), (dead) => {
    if (Exit.isFailure(dead)) return report(`the dead letters of ${webhook} cannot be read`)
    const addresses = addressesIn(records)
    for (const { notice } of dead.value) {
      const posts = records.posts.filter(({ id, url }) => id === notice.id && addresses.get(url) === webhook)
      if (posts.length < ATTEMPTS) report(`${webhook} was given up for ${notice.id} after ${posts.length} attempts`)
    }
  })

/** Opens every secret that the webhook ever had: it is the one that an administrator was told. */
const openSecrets = ({ records: { recorder, secrets }, report }: Simulation, host: Host, webhook: string) =>
  Effect.gen(function* () {
    for (const { event, metadata } of recorder.webhooks.get(webhook) ?? []) {
      if (event._tag !== "WebhookAdded" && event._tag !== "WebhookSecretRotated") continue
      const { sealedSecret } = event
      const open = Effect.flatMap(Vault.Vault, (vault) => vault.open(Vault.ofWebhook(webhook), "webhook.secret", sealedSecret))
      const exit = yield* Effect.exit(host.request(open))
      if (Exit.isFailure(exit)) {
        report(`a secret of ${webhook} cannot be opened`)
        continue
      }
      const told = secrets.told.get(String(metadata["reason"]))
      if (told !== undefined && told !== exit.value) report(`an administrator was told another secret of ${webhook}`)
      secrets.opened.set(sealedSecret, exit.value)
    }
  })

/** Where the state store has anything of a webhook, by its id. */
const SPACES = [Delivery.WAITING, Delivery.DEAD, "webhookLanes"] as const

const checkRemoved = ({ report, states }: Simulation, removed: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    if (removed.length === 0) return
    yield* Effect.sleep(MINUTE)
    for (const space of SPACES)
      for (const { key } of yield* Effect.orDie(states.list(space, { limit: 100_000 })))
        if (removed.some((id) => key === id || key.startsWith(`${id}/`))) report(`${space} still has ${key}, which was removed`)
    const keys = new Set((yield* Effect.orDie(states.list("vaultKeys", { limit: 100_000 }))).map(({ key }) => key))
    for (const id of removed) if (keys.has(`webhook:${id}`)) report(`the key of ${id} is still there, though it was removed`)
  })
