/** A host that opens accounts by the ids of its own users: sometimes one twice at once, and again when it was not answered. */
import { Registration } from "@millrace/core"
import { Effect, Exit } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { Host } from "./Host.ts"
import { type Opening, tagOf } from "./Records.ts"
import { nonEmpty, pickAny, pickHost, type Simulation } from "./Simulation.ts"

type Owner = Opening["owner"]

/** Opens an account, at one host or at several at once. */
export const act = (simulation: Simulation, random: SeededRandom): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { openings } = simulation.records
    const known = pickAny(random, openings)?.owner
    const isRepeated = random.chance(0.3)
    const reference = `user-${openings.length}`
    const own: Owner = { reference, ...(random.chance(0.3) ? { email: `${reference}@example.com` } : {}) }
    const owner = isRepeated && known !== undefined ? known : own
    const times = random.chance(0.5) ? 1 : 2 + random.below(2)
    const hosts = Array.from({ length: times }, () => pickHost(simulation, random)).filter((host) => host !== undefined)
    return Effect.forEach(hosts, (host) => open(simulation, host, owner), { concurrency: "unbounded", discard: true })
  })

const open = ({ records: { openings }, world }: Simulation, host: Host, owner: Owner) =>
  Effect.suspend(() => {
    const opening: Opening = { owner, host: host.name }
    openings.push(opening)
    const asked = host.request(Effect.flatMap(Registration, (registration) => registration.open(owner)))
    return Effect.map(Effect.exit(asked), (exit) => {
      const refusal = Exit.isFailure(exit) ? Exit.findErrorOption(exit) : undefined
      opening.answer = Exit.isSuccess(exit) ? "ok" : (tagOf(exit) ?? "died")
      if (Exit.isSuccess(exit)) opening.accountId = exit.value
      else if (refusal?._tag === "Some" && refusal.value._tag === "ReferenceTaken") opening.accountId = refusal.value.accountId
      world.note("registration", `opens ${owner.reference} at ${host.name}: ${opening.answer} ${opening.accountId ?? ""}`.trimEnd())
    })
  })

/** What a host answers for names that have an account. */
const TAKEN = new Set(["ok", "ReferenceTaken", "EmailTaken"])

/** Faults have ended: opens every account once more. Then each of them must be open. */
export const openAgain = (simulation: Simulation, random: SeededRandom) =>
  Effect.gen(function* () {
    const { openings } = simulation.records
    for (const owner of new Set(openings.map(({ owner }) => owner))) {
      yield* open(simulation, random.pick(nonEmpty(simulation.hosts)), owner)
      const { answer } = openings.at(-1) ?? {}
      if (!TAKEN.has(answer ?? "")) simulation.report(`${owner.reference} cannot be opened after faults have ended: ${answer}`)
    }
  })

/** Each id of a user has one account in the log, the one that every caller was told, and a host finds it. */
export const check = (simulation: Simulation, host: Host) =>
  Effect.gen(function* () {
    const { records, report } = simulation
    if (records.openings.length === 0) return
    const accounts = yield* accountsByReference(simulation, host)
    for (const [reference, told] of Map.groupBy(records.openings, ({ owner }) => owner.reference)) {
      const [accountId, ...others] = accounts.get(reference) ?? []
      if (accountId === undefined) report(`${reference} has no account, though it was opened after faults had ended`)
      if (others.length > 0) report(`${reference} has several accounts: ${accountId}, ${others.join(", ")}`)
      if (told.filter(({ answer }) => answer === "ok").length > 1) report(`several callers were told that they had opened ${reference}`)
      for (const { accountId: other, host } of told)
        if (other !== undefined && other !== accountId) report(`${host} answered ${other} for ${reference}, which has ${accountId}`)
      const found = yield* Effect.exit(host.request(Effect.flatMap(Registration, ({ find }) => find({ reference }))))
      if (Exit.isFailure(found) || found.value !== accountId) report(`${host.name} does not find ${reference} as ${accountId}`)
    }
  })

/** The accounts in the log, by the ids that they were opened with, as a host unseals them. */
const accountsByReference = ({ records: { recorder }, report }: Simulation, host: Host) =>
  Effect.gen(function* () {
    const accounts = new Map<string, ReadonlyArray<string>>()
    for (const { event, stream } of recorder.accountEvents) {
      if (event._tag !== "AccountOpened" || event.referenceHash === undefined) continue
      const accountId = stream.slice("account-".length)
      const read = yield* Effect.exit(host.request(Effect.flatMap(Registration, ({ reference }) => reference(accountId))))
      if (Exit.isFailure(read) || read.value === undefined) report(`${host.name} cannot read the id that ${accountId} was opened with`)
      else accounts.set(read.value, [...(accounts.get(read.value) ?? []), accountId])
    }
    return accounts
  })
