/** Contents, ranges and readers for the contract of blob stores. */
import { type BlobStore, Vault } from "@millrace/core"
import { EventIds } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import fc from "fast-check"
import type { Contract } from "./Contract.ts"

export type Blobs = BlobStore.BlobStore["Service"]
export type Vaults = Vault.Vault["Service"]

/** Tests of one store and the vault that seals its blobs. */
export type BlobContract = Contract<readonly [Blobs, Vaults]>

/** As blobs are cut, so that tests look where one chunk ends and another begins. */
export const CHUNK = 64 * 1024

/** Bytes that differ from place to place, so that a shift shows. */
export const content = (size: number): Buffer => {
  const bytes = Buffer.alloc(size)
  for (let i = 0; i < size; i++) bytes[i] = (i * 31 + (i >> 8) * 7 + (i >> 16)) & 255
  return bytes
}

export const freshSubjects = Effect.map(EventIds, (ids) => {
  const account = `acc_${ids(0)}`
  return { account: Vault.ofAccount(account), job: Vault.ofJob(`job_${ids(0)}`, account) }
})

export const read = (blobs: Blobs, subject: Vault.Subject, id: string, range?: { readonly offset: number; readonly length?: number }) =>
  Effect.flatMap(blobs.get(subject, id, range), ({ size, bytes }) =>
    Effect.map(Stream.runCollect(bytes), (parts) => ({ size, bytes: Buffer.concat(parts) }))
  )

/** The tag of its failure, or `success`. */
export const outcome = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<string, never, R> =>
  Effect.match(effect, { onFailure: (error) => error._tag, onSuccess: () => "success" })

export const sizes = [0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 77]
const near = fc.oneof(fc.nat(4 * CHUNK), fc.constantFrom(...sizes))
export const ranges = fc.oneof(fc.record({ offset: near }), fc.record({ offset: near, length: near }))

/** Which of these are listed. */
export const listed = (blobs: Blobs, ids: ReadonlyArray<string>) =>
  Effect.map(Stream.runCollect(blobs.list), (all) => ids.filter((id) => all.some((one) => one.id === id)))
