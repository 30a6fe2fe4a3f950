/** Callers with inboxes, and senders of mail: inboxes are created, read, moved and deleted, while mail comes to what they have or had. */
import { MailReceiver, ReceiverUnavailable } from "@millrace/core"
import { Effect, Exit, Option } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { call, callWithRetries, requestOf } from "../Callers.ts"
import type { Records } from "../Evidence.ts"
import type { Host } from "../Host.ts"
import { dataOf, type Intent, type Mailing, type Message, tagOf } from "../Records.ts"
import { nonEmpty, pickAny, pickHost, type Simulation } from "../Simulation.ts"
import { DOMAIN, rawOf } from "./Endpoints.ts"

/** An inbox as its owner was told of it. */
export interface KnownInbox {
  readonly inboxId: string
  readonly accountId: string
  /** Those that it has and had. */
  readonly addresses: ReadonlyArray<string>
}

/** The inboxes that callers were told of, the oldest first. */
export const knownInboxes = ({ calls }: Pick<Records, "calls">): ReadonlyArray<KnownInbox> => {
  const known = new Map<string, KnownInbox>()
  for (const call of calls) {
    const data = call.intent.operation.startsWith("inbox.") ? dataOf(call) : undefined
    if (typeof data?.address !== "string") continue
    const { accountId, addresses } = known.get(data.inbox_id) ?? { accountId: call.intent.accountId, addresses: [] }
    known.set(data.inbox_id, { inboxId: data.inbox_id, accountId, addresses: [...new Set([...addresses, data.address])] })
  }
  return [...known.values()]
}

/** Does one thing. Adds what callers want under a key to `intents`. */
export const act = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom): Effect.Effect<unknown> =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const known = knownInboxes(simulation.records)
    const inbox = pickAny(random, known)
    const choice = random.below(20)
    if (inbox === undefined || choice < 3) return create(simulation, intents, random)
    if (choice < 10) return mail(simulation, inbox, random)
    return change(simulation, intents, inbox, choice, random)
  })

const create = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom) => {
  const lifetime = random.pick([60, 300, 3_600, 86_400])
  const input = random.chance(0.5) ? { lifetime } : { lifetime, label: `label ${intents.length}` }
  return ask(simulation, intents, { accountId: random.pick(nonEmpty(simulation.accounts)), operation: "inbox.create", input }, random)
}

/** A call under a key, perhaps, and with retries. */
const ask = (
  simulation: Simulation,
  intents: Array<Intent>,
  { accountId, input, operation }: Pick<Intent, "accountId" | "input" | "operation">,
  random: SeededRandom
) => {
  const key = random.chance(simulation.keys) ? { key: `k${intents.length}` } : {}
  const intent = { accountId, operation, input, request: requestOf(operation, input), ...key }
  intents.push(intent)
  return callWithRetries(simulation, intent, random)
}

/** A call without a key. */
export const callOnce = (
  simulation: Simulation,
  host: Host,
  { accountId, inboxId }: Pick<KnownInbox, "accountId" | "inboxId">,
  operation: string,
  random: SeededRandom,
  { wait, ...rest }: { readonly wait?: number; readonly message?: string; readonly per_page?: number } = {}
) => {
  const input = { inbox: inboxId, ...rest }
  const waiting = wait === undefined ? {} : { wait }
  return call(simulation, host, { accountId, operation, input, request: requestOf(operation, input), ...waiting }, random)
}

/** All messages of an inbox on one page. */
export const ALL = { per_page: 100 } as const

const change = (simulation: Simulation, intents: Array<Intent>, inbox: KnownInbox, choice: number, random: SeededRandom) => {
  const host = pickHost(simulation, random)
  if (host === undefined) return Effect.void
  // Perhaps for another account
  const asker = random.chance(0.9) ? inbox : { ...inbox, accountId: random.pick(nonEmpty(simulation.accounts)) }
  if (choice < 12) return callOnce(simulation, host, asker, "inbox.listMessages", random, ALL)
  if (choice < 13) return callOnce(simulation, host, asker, "inbox.listMessages", random, { ...ALL, wait: random.pick([1, 10, 30]) })
  if (choice < 14) return callOnce(simulation, host, asker, "inbox.read", random)
  if (choice < 15) return readMessage(simulation, host, asker, random)
  const input = { inbox: inbox.inboxId }
  if (choice < 18) return ask(simulation, intents, { ...asker, operation: "inbox.rotate", input }, random)
  return ask(simulation, intents, { ...asker, operation: "inbox.delete", input }, random)
}

const readMessage = (simulation: Simulation, host: Host, inbox: KnownInbox, random: SeededRandom) => {
  const state = simulation.records.recorder.inboxes.stateOf(inbox.inboxId)
  const message = state.status === "active" ? pickAny(random, state.messages)?.messageId : undefined
  if (message === undefined) return Effect.void
  return callOnce(simulation, host, inbox, "inbox.readMessage", random, { message })
}

// senders

/** A message that nobody has sent before. */
export const newMessage = ({ serial }: Simulation, address: string): Message => {
  const n = serial()
  return { queueId: `queue ${n}`, address, subject: `subject ${n}`, text: `text ${n}` }
}

/** Sends a message, now and then again although it was taken, and again while a host cannot say. Sometimes two senders try at once. */
const mail = (simulation: Simulation, { addresses }: KnownInbox, random: SeededRandom): Effect.Effect<unknown> => {
  const address = random.chance(0.05)
    ? `nobody${random.below(9)}@${DOMAIN}`
    : random.chance(0.75)
      ? addresses.at(-1)
      : pickAny(random, addresses)
  const message = newMessage(simulation, address ?? "")
  const attempts = Effect.fnUntraced(function* (own: SeededRandom) {
    for (let attempt = 0; attempt < 5 && !simulation.isOver(); attempt++) {
      const host = pickHost(simulation, own)
      const told = host && (yield* deliver(simulation, host, message))
      if (told !== undefined && told !== "ReceiverUnavailable" && told !== "Disconnected" && !own.chance(0.1)) return
      yield* Effect.sleep(own.below(own.pick([50, 2_000, 60_000])))
    }
  })
  const senders = random.chance(0.15) ? [0, 1] : [0]
  return Effect.forEach(senders, (i) => attempts(random.fork(`sender ${i}`)), { concurrency: "unbounded", discard: true })
}

/** How long a server waits for its stores until it tells the sender to try again. */
const PATIENCE = "1 minute"

/** Delivers a message to a host as its SMTP server does. Returns what the sender is told; undefined if the host is down. */
export const deliver = (simulation: Simulation, host: Host, message: Message): Effect.Effect<string | undefined> =>
  Effect.suspend((): Effect.Effect<string | undefined> => {
    const { records, world } = simulation
    if (host.process === undefined) return Effect.undefined
    const mailing: Mailing = { message, startedAt: world.now, lengthBefore: records.recorder.length }
    records.mailings.push(mailing)
    const { address, queueId } = message
    const raw = rawOf(message)
    const authentication = { spf: null, dkim: null, dmarc: null, arc: null }
    const receive = Effect.gen(function* () {
      const receiver = Option.getOrThrow(yield* Effect.serviceOption(MailReceiver))
      yield* receiver.accepts(address, raw.length)
      yield* receiver.receive(address, { queueId, sender: null, remoteAddress: "192.0.2.1", raw, authentication })
    }).pipe(
      Effect.timeoutOrElse({ duration: PATIENCE, orElse: () => Effect.fail(new ReceiverUnavailable({ reason: "no answer in time" })) })
    )
    return Effect.map(Effect.exit(host.request(receive)), (exit) => {
      const told = Exit.isSuccess(exit) ? "taken" : (tagOf(exit) ?? "died")
      mailing.answer = { told, at: world.now, lengthAfter: records.recorder.length }
      world.note("mail", `${queueId} to ${address} at ${host.name}: ${told}`)
      return told
    })
  })
