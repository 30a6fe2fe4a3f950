import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import { given } from "../../../testing/src/GivenWhenThen.ts"
import { claim, EmailClaim } from "../../src/accounts/Claim.ts"
import * as Credits from "../../src/Credits.ts"
import { AccountId } from "../../src/Ids.ts"
import { ofJob } from "../../src/vault/Vault.ts"
import * as FaultyStateStore from "../vault/FaultyStateStore.ts"
import { outcome } from "../vault/Vaults.ts"
import { host, logText, type Stores, stores, testing, typesIn } from "./Hosts.ts"

const ADA = "ada@example.com"
const all = { concurrency: "unbounded" } as const
const range = (n: number) => Array.from({ length: n }, (_, i) => i)
/** Advances the clock from now on, so that an append in doubt is repeated. */
const ticking = Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(50), Effect.yieldNow)))

describe("opening an account", () => {
  testing(
    "claims the address, then opens the account, and grants nothing yet",
    Effect.gen(function* () {
      const shared = yield* stores
      const { registration, ledger } = yield* host(shared)
      const accountId = yield* registration.open(ADA, { actor: "root", reason: "asked by phone" })
      expect(yield* typesIn(shared)).toEqual(["EmailClaimed", "AccountOpened"])
      expect(yield* ledger.balance(accountId)).toMatchObject({ status: "opened", available: 0 })
      expect(yield* registration.find(ADA)).toBe(accountId)
      expect(yield* registration.email(accountId)).toBe(ADA)
      expect((yield* logText(shared)).match(/asked by phone/gu)).toHaveLength(2)
    })
  )

  testing(
    "is refused for a used address in any spelling and for an invalid one; the errors say nothing more",
    Effect.gen(function* () {
      const { registration } = yield* host(yield* stores)
      const accountId = yield* registration.open(ADA)
      for (const spelling of [ADA, " Ada@Example.com ", "ADA@EXAMPLE.COM"]) {
        expect({ ...(yield* Effect.flip(registration.open(spelling))) }).toEqual({ _tag: "EmailTaken" })
        expect(yield* registration.find(spelling)).toBe(accountId)
      }
      expect({ ...(yield* Effect.flip(registration.open("ada@example"))) }).toEqual({ _tag: "InvalidEmail" })
      expect(yield* registration.find("ada@example")).toBeUndefined()
      expect(yield* registration.find("bob@example.com")).toBeUndefined()
    })
  )

  testing(
    "by 64 concurrent callers in two processes makes one account",
    Effect.gen(function* () {
      const shared = yield* stores
      const hosts = [yield* host(shared), yield* host(shared)]
      const opened = yield* Effect.forEach(range(64), (i) => outcome((hosts[i % 2] ?? hosts[0])!.registration.open(ADA)), all)
      expect(opened.filter((each) => each === "EmailTaken")).toHaveLength(63)
      const [accountId = ""] = opened.filter((each) => each !== "EmailTaken")
      expect(yield* hosts[0]!.registration.find(ADA)).toBe(accountId)
      expect((yield* typesIn(shared)).sort()).toEqual(["AccountOpened", "EmailClaimed"])
      expect(yield* hosts[1]!.registration.email(accountId)).toBe(ADA)
    })
  )

  testing(
    "writes no address in clear to the log or the state store",
    Effect.gen(function* () {
      const shared = yield* stores
      const { registration, keys } = yield* host(shared)
      const accountId = yield* registration.open("canary@secret.example")
      yield* keys.issue(accountId, { label: "canary label" })
      const state = yield* Effect.forEach(["vaultKeys", "vaultSubjects", "projections"], (space) => shared.states.list(space))
      const text =
        (yield* logText(shared)) +
        state
          .flat()
          .map(({ key, value }) => key + Buffer.from(value).toString())
          .join("\n")
      expect(text).toContain(accountId)
      expect(text).not.toMatch(/canary|secret\.example/iu)
    })
  )
})

describe("an interrupted opening", () => {
  /** Fails the n-th append or state call. An interrupted caller tries again in a new process. */
  const finished = (broken: (shared: Stores) => Stores) =>
    Effect.gen(function* () {
      const shared = yield* stores
      yield* ticking
      const first = yield* outcome(Effect.flatMap(host(broken(shared)), ({ registration }) => registration.open(ADA)))
      const { registration, ledger } = yield* host(shared)
      const second = yield* outcome(registration.open(ADA))
      const accountId = (yield* registration.find(ADA)) ?? ""
      // One caller has the account. A caller whose result is unknown asks again, and gets `EmailTaken`
      expect([first, second].filter((each) => each === accountId).length).toBeLessThanOrEqual(1)
      expect([first, second]).not.toContain("defect")
      expect((yield* typesIn(shared)).sort()).toEqual(["AccountOpened", "EmailClaimed"])
      expect(yield* registration.email(accountId)).toBe(ADA)
      expect(yield* ledger.balance(accountId)).toMatchObject({ status: "opened" })
      return { first, second }
    })

  testing(
    "is completed by the next attempt after a failure at any append",
    Effect.gen(function* () {
      const seen = new Set<string>()
      for (const n of [1, 2])
        for (const fault of FaultyEventStore.faults) {
          const { first, second } = yield* finished(({ events, states }) => ({
            events: FaultyEventStore.make(events, { plan: { appends: { [n]: fault } }, lateBy: 100 }),
            states
          }))
          for (const each of [first, second]) seen.add(each.slice(0, 4))
        }
      expect(seen).toEqual(new Set(["acc_", "Emai", "Stor"]))
    })
  )

  testing(
    "is completed by the next attempt after a failure at any call of the state store",
    Effect.gen(function* () {
      let stopped = 0
      for (const fault of ["before", "after"] as const)
        for (const n of range(12)) {
          const { first } = yield* finished(({ events, states }) => ({ events, states: FaultyStateStore.make(states, { [n + 1]: fault }) }))
          if (first === "StateUnavailable") stopped++
        }
      expect(stopped).toBeGreaterThanOrEqual(6)
    })
  )

  testing(
    "is completed by one of 64 concurrent attempts after the claim",
    Effect.gen(function* () {
      const shared = yield* stores
      const events = FaultyEventStore.make(shared.events, { plan: { appends: { 2: "before" } } })
      expect(yield* outcome((yield* host({ ...shared, events })).registration.open(ADA))).toBe("StoreUnavailable")
      const hosts = [yield* host(shared), yield* host(shared)]
      expect(yield* hosts[0]!.registration.find(ADA)).toBeUndefined()
      const opened = yield* Effect.forEach(range(64), (i) => outcome(hosts[i % 2]!.registration.open(ADA)), all)
      expect(opened.filter((each) => each !== "EmailTaken")).toHaveLength(1)
      expect((yield* typesIn(shared)).sort()).toEqual(["AccountOpened", "EmailClaimed"])
    })
  )
})

describe("an account", () => {
  testing(
    "is granted its sign-up credits once, for concurrent verifications in two processes",
    Effect.gen(function* () {
      const shared = yield* stores
      const hosts = [yield* host(shared), yield* host(shared)]
      const { registration, ledger } = hosts[0]!
      const accountId = yield* registration.open(ADA)
      yield* Effect.forEach(range(64), (i) => hosts[i % 2]!.registration.verify(accountId), all)
      expect(yield* ledger.balance(accountId)).toMatchObject({ status: "verified", available: 200_000 })
      expect(yield* typesIn(shared, `account-${accountId}`)).toEqual(["AccountOpened", "AccountVerified", "CreditsGranted"])
      expect((yield* ledger.balance(accountId)).lots).toMatchObject([{ lotId: accountId.replace("acc_", "lot_"), source: "signup" }])
    })
  )

  testing(
    "is granted the sign-up credits that the host configures",
    Effect.gen(function* () {
      const { registration, ledger } = yield* host(yield* stores, { signUpCredits: Credits.of(5) })
      const accountId = yield* registration.open(ADA)
      yield* registration.verify(accountId)
      expect(yield* ledger.balance(accountId)).toMatchObject({ available: 5 })
    })
  )

  testing(
    "is suspended, reinstated and closed, with actor and reason in the metadata",
    Effect.gen(function* () {
      const shared = yield* stores
      const { registration, ledger } = yield* host(shared)
      const accountId = yield* registration.open(ADA)
      const status = Effect.map(ledger.balance(accountId), (balance) => balance.status)
      for (const [act, expected] of [
        ["verify", "verified"],
        ["suspend", "suspended"],
        ["suspend", "suspended"],
        ["reinstate", "verified"],
        ["close", "closed"],
        ["close", "closed"]
      ] as const) {
        yield* registration[act](accountId, { actor: "root", reason: `to ${act}` })
        expect(yield* status).toBe(expected)
      }
      for (const act of ["suspend", "reinstate", "verify"] as const)
        expect([act, yield* outcome(registration[act](accountId))]).toEqual([act, "AccountClosed"])
      const log = yield* logText(shared)
      for (const reason of ["to verify", "to suspend", "to reinstate", "to close"]) expect(log).toContain(reason)
      expect(log.match(/to suspend/gu)).toHaveLength(1)
    })
  )

  testing(
    "that does not exist is not found, and nothing is written",
    Effect.gen(function* () {
      const shared = yield* stores
      const { registration } = yield* host(shared)
      for (const act of ["verify", "suspend", "reinstate", "close", "erase", "email"] as const)
        expect(yield* outcome<unknown, { readonly _tag: string }, never>(registration[act]("acc_none"))).toBe("AccountNotFound")
      expect(yield* typesIn(shared)).toEqual([])
      expect(yield* shared.states.list("vaultSubjects")).toEqual([])
    })
  )

  testing(
    "that is erased is unreadable and cannot be opened again; its amounts stay",
    Effect.gen(function* () {
      const shared = yield* stores
      const [here, there] = [yield* host(shared), yield* host(shared)]
      const accountId = yield* here.registration.open(ADA)
      yield* here.registration.verify(accountId)
      yield* here.keys.issue(accountId, { label: "laptop" })
      const artifact = yield* there.vault.seal(ofJob("job_1", accountId), "artifact", "x")
      expect(yield* there.registration.email(accountId)).toBe(ADA)
      for (const _ of [1, 2]) yield* here.registration.erase(accountId, { actor: "root", reason: "article 17" })
      for (const { registration, keys, ledger, vault } of [here, there]) {
        expect(yield* outcome(registration.email(accountId))).toBe("SubjectDestroyed")
        expect(yield* outcome(vault.open(ofJob("job_1", accountId), "artifact", artifact))).toBe("SubjectDestroyed")
        expect(yield* keys.list(accountId)).toMatchObject([{ label: null }])
        expect(yield* outcome(registration.open(ADA))).toBe("EmailTaken")
        expect(yield* ledger.balance(accountId)).toMatchObject({ status: "closed", available: 200_000 })
      }
      expect((yield* logText(shared)).match(/article 17/gu)).toHaveLength(1)
    })
  )

  testing(
    "is erased by the next attempt if the first was interrupted",
    Effect.gen(function* () {
      for (const fault of ["before", "after"] as const) {
        const shared = yield* stores
        const plan: Record<number, FaultyStateStore.Fault> = {}
        const states = FaultyStateStore.make(shared.states, plan)
        const { registration } = yield* host({ ...shared, states })
        const accountId = yield* registration.open(ADA)
        plan[states.calls() + 1] = fault
        expect(yield* outcome(registration.erase(accountId))).toBe("StateUnavailable")
        yield* registration.erase(accountId)
        expect(yield* outcome(registration.email(accountId))).toBe("SubjectDestroyed")
      }
    })
  )
})

describe("the claim of an address", () => {
  const [mine, yours] = [AccountId.make("acc_01ARZ3NDEKTSV4RRFFQ69G5FAV"), AccountId.make("acc_01ARZ3NDEKTSV4RRFFQ69G5FAW")]
  const claimed = { _tag: "EmailClaimed", accountId: mine } as const

  testing(
    "is made once, and stays with its account",
    Effect.sync(() => {
      given(EmailClaim, []).when(claim(claimed)).then([claimed]).thenState({ accountId: mine })
      given(EmailClaim, [claimed])
        .when(claim({ ...claimed, accountId: yours }))
        .then([])
        .thenState({ accountId: mine })
      given(EmailClaim, [claimed]).when(claim(claimed)).then([])
      expect(EmailClaim.evolve({ accountId: mine }, { ...claimed, accountId: yours }, 0)).toEqual({ accountId: mine })
    })
  )
})

describe("opening an account by the host's own id", () => {
  testing(
    "needs no address; the account is found, read and resolved by the id",
    Effect.gen(function* () {
      const shared = yield* stores
      const { registration } = yield* host(shared)
      const accountId = yield* registration.open({ reference: "user-7" })
      expect(yield* typesIn(shared)).toEqual(["ReferenceClaimed", "AccountOpened"])
      expect(yield* registration.find({ reference: "user-7" })).toBe(accountId)
      expect(yield* registration.resolve("user-7")).toBe(accountId)
      expect(yield* registration.resolve(accountId)).toBe(accountId)
      expect(yield* registration.reference(accountId)).toBe("user-7")
      expect(yield* registration.email(accountId)).toBeUndefined()
      expect(yield* outcome(registration.resolve("user-8"))).toBe("AccountNotFound")
      expect(yield* logText(shared)).not.toContain("user-7")
    })
  )

  testing(
    "claims the address too, where there is one, and refuses either name a second time",
    Effect.gen(function* () {
      const shared = yield* stores
      const { registration } = yield* host(shared)
      const accountId = yield* registration.open({ reference: "user-7", email: ADA })
      expect(yield* registration.find(ADA)).toBe(accountId)
      expect(yield* outcome(registration.open({ reference: "user-8", email: ADA }))).toBe("EmailTaken")
      // A refused address leaves no claim on the reference
      const other = yield* registration.open({ reference: "user-8" })
      expect(yield* Effect.flip(registration.open({ reference: "user-7" }))).toMatchObject({ _tag: "ReferenceTaken", accountId })
      expect(yield* Effect.flip(registration.open({ reference: "user-8", email: "bob@example.com" }))).toMatchObject({ accountId: other })
      expect(yield* registration.find("bob@example.com")).toBeUndefined()
    })
  )

  testing(
    "by 64 concurrent callers in two processes makes one account",
    Effect.gen(function* () {
      const shared = yield* stores
      const hosts = [yield* host(shared), yield* host(shared)]
      const owner = { reference: "user-7", email: ADA }
      const opened = yield* Effect.forEach(range(64), (i) => outcome((hosts[i % 2] ?? hosts[0])!.registration.open(owner)), all)
      const accounts = opened.filter((each) => each.startsWith("acc_"))
      expect(accounts).toHaveLength(1)
      expect(yield* hosts[1]!.registration.find(owner)).toBe(accounts[0])
      expect((yield* typesIn(shared)).sort()).toEqual(["AccountOpened", "EmailClaimed", "ReferenceClaimed"])
    })
  )

  testing(
    "refuses what is no reference, and what looks like the id of an account",
    Effect.gen(function* () {
      const { registration } = yield* host(yield* stores)
      for (const reference of ["", "a\nb", "x".repeat(201), "acc_1", "\ud800"])
        expect(yield* outcome(registration.open({ reference }))).toBe("InvalidReference")
      expect(yield* outcome(registration.open({}))).toBe("InvalidEmail")
    })
  )
})
