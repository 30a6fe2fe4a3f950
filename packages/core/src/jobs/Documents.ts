/**
 * The input, checkpoints, result and failure details of jobs, sealed under the job's own key, in the state store. A document is named by
 * the hash of its stored bytes, so none is overwritten: the job's events name the current one.
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

const SPACE = "jobs"
const PAGE = 100
/** The most pages to remove of one job. A job has about three documents at a time. */
const PAGES = 100

const purposeOf = (purpose: Purpose): string => `job-${purpose}`
const keyOf = ({ jobId }: Owner, { hash }: Document): string => `${jobId}/${hash}`

export type Documents = Effect.Success<typeof make>

export const make = Effect.gen(function* () {
  const vault = yield* Vault
  const states = yield* StateStore.StateStore
  // A write without an expected version cannot conflict
  const write = (changes: Array.NonEmptyReadonlyArray<StateStore.Change>) =>
    Effect.asVoid(Effect.catchTag(states.write(changes), "StateConflict", Effect.die))
  const subjectOf = ({ accountId, jobId }: Owner) => ofJob(jobId, accountId)

  const documentOf = (sealed: string): Document => ({ size: sealed.length, hash: hash("sha256", sealed, "base64url") })
  const put = (owner: Owner, sealed: string): StateStore.Change => ({
    _tag: "put",
    space: SPACE,
    key: keyOf(owner, documentOf(sealed)),
    value: Buffer.from(sealed)
  })

  return {
    /** Seals and stores a text. */
    keep: Effect.fnUntraced(function* (owner: Owner, purpose: Purpose, text: string) {
      const sealed = yield* vault.seal(subjectOf(owner), purposeOf(purpose), text)
      yield* write([put(owner, sealed)])
      return documentOf(sealed)
    }),
    /** Seals and stores the first text of a job, in one write with the job's key. */
    keepFirst: (owner: Owner, purpose: Purpose, text: string) =>
      Effect.suspend(() => {
        let document: Document | undefined
        const stored = vault.sealFirst(subjectOf(owner), purposeOf(purpose), text, (sealed) => {
          document = documentOf(sealed)
          return put(owner, sealed)
        })
        return Effect.flatMap(stored, () =>
          document === undefined ? Effect.die(new Error("Nothing was sealed")) : Effect.succeed(document)
        )
      }),
    /** Reads a document. `Tampered` also if it does not exist. */
    open: Effect.fnUntraced(function* (owner: Owner, purpose: Purpose, document: Document) {
      const stored = states.get(SPACE, keyOf(owner, document))
      // Also looks for the key of a missing document, so that a destroyed job fails with `SubjectDestroyed`
      const [entry, openText] = yield* Effect.all([stored, vault.opener(subjectOf(owner))], { concurrency: 2 })
      const sealed = entry === undefined ? "" : Buffer.from(entry.value).toString("latin1")
      const text = yield* openText(purposeOf(purpose), sealed)
      if (hash("sha256", sealed, "base64url") === document.hash) return text
      return yield* new Tampered({ subject: owner.jobId, purpose: purposeOf(purpose) })
    }),
    /** Removes a document that no event names as current. */
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
