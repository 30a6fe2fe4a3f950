/**
 * The input, checkpoints, result and failure details of jobs, sealed under the job's own key. They are in the state store, or small ones in
 * the job's events. A document in the state store is named by the hash of its stored bytes, so none is overwritten: the job's events name
 * the current one.
 */
import { hash } from "node:crypto"
import { StateStore } from "@millrace/event-sourcing"
import { Array, Effect } from "effect"
import { ofJob, Tampered, Vault } from "../vault/Vault.ts"
import type { Document } from "./Job.ts"

export type Purpose = "input" | "checkpoint" | "result" | "details"

/** The job that documents belong to. Erasing the account also erases them. */
export interface Owner {
  readonly jobId: string
  readonly accountId: string
}

interface Stored {
  readonly document: Document
  readonly changes: ReadonlyArray<StateStore.Change>
}

const SPACE = "jobs"
const PAGE = 100
/** The most pages to remove of one job. A job has about three documents at a time. */
const PAGES = 100

const purposeOf = (purpose: Purpose): string => `job-${purpose}`
const keyOf = ({ jobId }: Owner, { hash }: Document): string => `${jobId}/${hash}`

/** Where small documents are stored. */
export type Place = "state" | "events"

/** The longest sealed text that is stored in an event, in characters. */
const IN_EVENT = 2_000

export type Documents = Effect.Success<ReturnType<typeof make>>

/** `place`: where small inputs, results and failure details are stored. They are read from both. */
export const make = Effect.fnUntraced(function* (place: Place) {
  const vault = yield* Vault
  const states = yield* StateStore.StateStore
  // A write without an expected version cannot conflict
  const write = (changes: Array.NonEmptyReadonlyArray<StateStore.Change>) =>
    Effect.asVoid(Effect.catchTag(states.write(changes), "StateConflict", Effect.die))
  const subjectOf = ({ accountId, jobId }: Owner) => ofJob(jobId, accountId)

  /** The document, and the write that stores it unless its event does. A checkpoint is removed before its job ends, so no event stores it. */
  const storedAs = (owner: Owner, purpose: Purpose, sealed: string): Stored => {
    const named = { size: sealed.length, hash: hash("sha256", sealed, "base64url") }
    return place === "events" && purpose !== "checkpoint" && sealed.length <= IN_EVENT
      ? { document: { ...named, sealed }, changes: [] }
      : { document: named, changes: [{ _tag: "put", space: SPACE, key: keyOf(owner, named), value: Buffer.from(sealed) }] }
  }

  /** A document that the vault seals and stores. `seal` gets a function that returns the writes of a sealed text, and uses its last result. */
  const sealed = <E>(
    owner: Owner,
    purpose: Purpose,
    seal: (changes: (sealed: string) => Stored["changes"]) => Effect.Effect<string, E>
  ): Effect.Effect<Document, E> =>
    Effect.suspend(() => {
      let stored: Stored | undefined
      const changes = (text: string) => {
        stored = storedAs(owner, purpose, text)
        return stored.changes
      }
      return Effect.map(seal(changes), (text) => (stored ?? storedAs(owner, purpose, text)).document)
    })

  /** The sealed text in the state store; empty if it does not exist. */
  const find = (owner: Owner, document: Document) =>
    Effect.map(states.get(SPACE, keyOf(owner, document)), (entry) =>
      entry === undefined ? "" : Buffer.from(entry.value).toString("latin1")
    )

  return {
    /** Seals and stores a text. One that its event stores is there once the event is. */
    keep: (owner: Owner, purpose: Purpose, text: string) =>
      sealed(owner, purpose, (changes) => vault.sealAgain(subjectOf(owner), purposeOf(purpose), text, changes)),
    /** As `keep`, for the first text of a job, in one write with the job's key. */
    keepFirst: (owner: Owner, purpose: Purpose, text: string) =>
      sealed(owner, purpose, (changes) => vault.sealFirst(subjectOf(owner), purposeOf(purpose), text, changes)),
    /** Reads a document. `Tampered` also if it does not exist. */
    open: Effect.fnUntraced(function* (owner: Owner, purpose: Purpose, document: Document) {
      const opener = vault.opener(subjectOf(owner))
      // Also looks for the key of a missing document, so that a destroyed job fails with `SubjectDestroyed`
      const [sealed, openText] =
        document.sealed === undefined
          ? yield* Effect.all([find(owner, document), opener], { concurrency: 2 })
          : ([document.sealed, yield* opener] as const)
      const text = yield* openText(purposeOf(purpose), sealed)
      if (hash("sha256", sealed, "base64url") === document.hash) return text
      return yield* new Tampered({ subject: owner.jobId, purpose: purposeOf(purpose) })
    }),
    /** Removes a document of the state store that no event names as current. */
    drop: (owner: Owner, document: Document) => write([{ _tag: "remove", space: SPACE, key: keyOf(owner, document) }]),
    /** Destroys the job's key, which makes its documents and artifacts unreadable, then removes its documents. */
    destroy: Effect.fnUntraced(function* (owner: Owner) {
      yield* vault.destroy(subjectOf(owner))
      for (let pages = 0; pages < PAGES; pages++) {
        const entries = yield* states.list(SPACE, { after: `${owner.jobId}/`, limit: PAGE })
        const removals = entries
          .filter(({ key }) => key.startsWith(`${owner.jobId}/`))
          .map(({ key }): StateStore.Change => ({ _tag: "remove", space: SPACE, key }))
        if (!Array.isArrayNonEmpty(removals)) return
        yield* write(removals)
      }
      return yield* new StateStore.StateUnavailable({ reason: "removed documents are still listed" })
    })
  }
})
