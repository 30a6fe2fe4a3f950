/** What people do with their keys, each recorded as an act with its beginning and end. */
import { KeyRing } from "@millrace/core"
import { Effect, Exit } from "effect"
import type { Act as KeyAct } from "../../KeyHistory.ts"
import type { SeededRandom } from "../../SeededRandom.ts"
import { call, requestOf } from "../Callers.ts"
import { dataOf, type Input, tagOf } from "../Records.ts"
import { pickHost, type Simulation } from "../Simulation.ts"
import type { KnownKey } from "./People.ts"
import { asking } from "./Visits.ts"

/** An account calls an operation once. Returns what it was answered; undefined without a success. */
export const callAs = (
  simulation: Simulation,
  accountId: string,
  operation: string,
  input: Input,
  random: SeededRandom,
  host = pickHost(simulation, random)
) =>
  Effect.gen(function* () {
    const intent = { accountId, operation, input, request: requestOf(operation, input) }
    const asked = host && (yield* call(simulation, host, intent, random))
    return asked?.response !== undefined && Exit.isSuccess(asked.response.answer) ? dataOf(asked) : undefined
  })

/** What `callAs` does, with its beginning and end. */
const calling = (
  simulation: Simulation,
  account: string,
  operation: string,
  input: Readonly<Record<string, unknown>>,
  random: SeededRandom
) =>
  Effect.gen(function* () {
    const { people } = simulation.records
    const [began, from] = [people.next(), simulation.world.now]
    const data = yield* callAs(simulation, account, operation, input, random)
    return { data, order: [began, people.next()], time: [from, simulation.world.now] } as const
  })

const learn = (
  { records: { people } }: Simulation,
  account: string,
  data: Readonly<Record<string, unknown>>,
  timed: Pick<KeyAct, "order" | "time">
) => {
  const expiresAt = data["expires_at"] === null ? null : Date.parse(String(data["expires_at"]))
  const known: KnownKey = { key: String(data["key_id"]), account, text: String(data["key"]), expiresAt }
  people.keys.set(known.key, known)
  people.keyActs.push({ _tag: "Issued", key: known.key, expiresAt, ...timed })
  return known
}

/** Issues a key for so many milliseconds, or for ever. Returns it, if it was answered. */
export const issueKey = (simulation: Simulation, account: string, lasts: number | undefined, random: SeededRandom) =>
  Effect.gen(function* () {
    const input = lasts === undefined ? {} : { expires_at: simulation.world.now + lasts }
    const { data, ...timed } = yield* calling(simulation, account, "keys.issue", input, random)
    return data === undefined ? undefined : learn(simulation, account, data, timed)
  })

/** Replaces a key, which can be used for so many seconds more. Returns the new one, if it was answered. */
export const rotateKey = (simulation: Simulation, { account, expiresAt, key }: KnownKey, overlap: number, random: SeededRandom) =>
  Effect.gen(function* () {
    const { data, ...timed } = yield* calling(simulation, account, "keys.rotate", { key, overlap }, random)
    simulation.records.people.keyActs.push({ _tag: "Rotated", key, overlap: overlap * 1_000, isSure: data !== undefined, ...timed })
    const next = data && learn(simulation, account, data, timed)
    if (next !== undefined && next.expiresAt !== expiresAt)
      simulation.report(`${next.key} took the place of ${key}, and has another expiry`)
    return next
  })

/** Its owner revokes a key, or `by`, who cannot. */
export const revokeKey = (simulation: Simulation, { account, key }: KnownKey, random: SeededRandom, by = account) =>
  Effect.gen(function* () {
    const { data, ...timed } = yield* calling(simulation, by, "keys.revoke", { key }, random)
    if (by === account) simulation.records.people.keyActs.push({ _tag: "Revoked", key, isSure: data !== undefined, ...timed })
    else if (data !== undefined) simulation.report(`${by} revoked ${key} of ${account}`)
  })

/** The text of a key with another secret, whose checksum is wrong or, rarely, right. */
const forged = (text: string): string => `${text.slice(0, -1)}${text.endsWith("A") ? "B" : "A"}`

/** Comes with a key, rarely with a text that is none. Returns how it was answered. */
export const comeWithKey = (
  simulation: Simulation,
  { account, key, text }: KnownKey,
  random: SeededRandom,
  host = pickHost(simulation, random),
  isRight = random.chance(0.9)
) =>
  Effect.gen(function* () {
    const given = isRight ? text : forged(text)
    const answer = yield* asking(
      simulation,
      host,
      `comes with ${key}`,
      Effect.flatMap(KeyRing, (keys) => keys.authenticate(given))
    )
    if (answer === undefined) return "unknown"
    const { exit, order, time } = answer
    const told = Exit.isSuccess(exit) ? "in" : tagOf(exit) === "Unauthorized" ? "out" : "unknown"
    if (Exit.isSuccess(exit) && exit.value.accountId !== account)
      simulation.report(`${key} is of ${account}, and was taken for ${exit.value.accountId}`)
    simulation.records.people.keyActs.push({ _tag: "Used", key, isRight, answer: told, order, time })
    return told
  })
