/**
 * The final phase of inboxes: faults have ended, so every host takes mail, shows what was taken, and refuses an address as soon as it was
 * moved or its inbox has ended. A day later no inbox lives, and nothing is left of any.
 */
import { Inbox, Inboxes } from "@millrace/core"
import { Effect, Exit, Fiber, Option } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { call, requestOf } from "../Callers.ts"
import type { Host } from "../Host.ts"
import { dataOf } from "../Records.ts"
import { nonEmpty, type Simulation } from "../Simulation.ts"
import { ALL, callOnce, deliver, type KnownInbox, knownInboxes, newMessage } from "./Actor.ts"

/** The longest time until a caller who waits for a message is shown it, milliseconds. */
const SHOWN_WITHIN = 3_000

/** Where messages are kept in the state store: notes of blobs, and small messages. */
const MESSAGES = ["inboxFiles", "inboxMail"]

export const settle = (simulation: Simulation, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (simulation.inboxes === 0) return
    const { accounts, hosts, records } = simulation
    for (const inbox of knownInboxes(records))
      for (const host of hosts) yield* callOnce(simulation, host, inbox, "inbox.listMessages", random, ALL)
    for (const accountId of accounts) yield* live(simulation, accountId, random.fork(accountId))
    yield* nameAddresses(simulation, random.pick(nonEmpty(hosts)))
  })

/** A whole life of an inbox, at any hosts. An account that may not spend has none. */
const live = (simulation: Simulation, accountId: string, random: SeededRandom) =>
  Effect.gen(function* () {
    const { records, report, world } = simulation
    const hosts = nonEmpty(simulation.hosts)
    const input = { lifetime: 3_600 }
    const request = requestOf("inbox.create", input)
    const created = yield* call(simulation, random.pick(hosts), { accountId, operation: "inbox.create", input, request }, random)
    const data = created && dataOf(created)
    if (data === undefined) return
    const inbox: KnownInbox = { inboxId: data.inbox_id, accountId, addresses: [data.address] }
    const ask = (operation: string, options = {}) => callOnce(simulation, random.pick(hosts), inbox, operation, random, options)
    const tell = (address: string) => deliver(simulation, random.pick(hosts), newMessage(simulation, address))

    const waiting = yield* Effect.forkChild(ask("inbox.listMessages", { ...ALL, wait: 30 }))
    yield* Effect.sleep(2_000)
    if ((yield* tell(data.address)) !== "taken") report(`mail to ${data.address} is not taken after faults have ended`)
    const since = world.now
    const shown = yield* Fiber.join(waiting)
    // A caller without credits is not shown it at all
    if (shown?.response !== undefined && Exit.isSuccess(shown.response.answer) && world.now - since > SHOWN_WITHIN)
      report(`a caller that waited for mail in ${inbox.inboxId} was shown it ${world.now - since} ms late`)

    const rotated = yield* ask("inbox.rotate")
    const moved = rotated && dataOf(rotated)
    if (moved !== undefined) {
      if ((yield* tell(data.address)) !== "UnknownAddress") report(`${data.address} takes mail after ${inbox.inboxId} was moved`)
      if ((yield* tell(moved.address)) !== "taken") report(`${moved.address} does not take mail`)
    }
    const removed = yield* ask("inbox.delete")
    if (removed === undefined || dataOf(removed) === undefined) return report(`${inbox.inboxId} cannot be deleted`)
    for (const space of MESSAGES)
      for (const { key } of yield* Effect.orDie(simulation.states.list(space, { limit: 100_000 })))
        if (key.startsWith(inbox.inboxId)) report(`a message of ${inbox.inboxId} is left after it was deleted: ${key}`)
    for (const address of records.recorder.inboxes.of(inbox.inboxId).events.length > 0
      ? [data.address, moved?.address ?? data.address]
      : [])
      if ((yield* tell(address)) !== "UnknownAddress") report(`${address} takes mail after ${inbox.inboxId} was deleted`)
  })

/** Learns how the log names the addresses that callers were told, and those that mail was sent to. */
const nameAddresses = ({ records }: Simulation, host: Host) =>
  Effect.gen(function* () {
    const inboxes = Effect.map(Effect.serviceOption(Inboxes), Option.getOrThrow)
    const { addresses } = yield* Effect.orDie(host.request(inboxes))
    const told = knownInboxes(records).flatMap(({ addresses }) => addresses)
    for (const address of [...told, ...records.mailings.map(({ message }) => message.address)])
      records.addressHashes.set(address, addresses.hashOf(address) ?? "")
  })

/** Once all are past their time: each has its end in the log, and neither a key nor a file is left. */
export const checkEnded = ({ records, report, states }: Simulation) =>
  Effect.gen(function* () {
    const { byId } = records.recorder.inboxes
    if (byId.size === 0) return
    const keys = new Set((yield* Effect.orDie(states.list("vaultKeys", { limit: 100_000 }))).map(({ key }) => key))
    for (const inboxId of byId.keys()) {
      const state = records.recorder.inboxes.stateOf(inboxId)
      if (state.status === "active") report(`the end of ${inboxId} is not in the log`)
      if (keys.has(`inbox:${inboxId}`)) report(`the key of ${inboxId} is still there, though it is ${state.status}`)
    }
    for (const space of MESSAGES)
      for (const { key } of yield* Effect.orDie(states.list(space, { limit: 100_000 }))) report(`${space} still has ${key}`)
  })

/** The files that live inboxes need. */
export const filesOf = (inbox: Inbox.Inbox, now: number): ReadonlyArray<string> =>
  Inbox.isLive(inbox, now) ? inbox.messages.map(({ blobId }) => blobId) : []
