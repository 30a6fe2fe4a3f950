/** Inboxes as a server has them: on SQLite, with messages as sealed files on disk and the real reader of mail. */
import { join } from "node:path"
import { Inbox, Inboxes, type MailReceiver, Millrace, newAccountId, newReservationId, Vault } from "@millrace/core"
import * as FileBlobStore from "@millrace/upstreams/file-blob-store"
import { MailParser } from "@millrace/upstreams/mail"
import { Effect, Layer } from "effect"
import { stores } from "./host.ts"

export const layer = (folder: string, domain: string): Layer.Layer<Inboxes | MailReceiver, unknown> =>
  Millrace.inboxes({ domain }).pipe(
    Layer.provide([MailParser.layer(), FileBlobStore.layer(join(folder, "blobs"))]),
    Layer.provide(Vault.Vault.layer),
    Layer.provide(stores(folder))
  )

/** The addresses of new inboxes, each of another account. */
export const open = (count: number) =>
  Effect.gen(function* () {
    const inboxes = yield* Inboxes
    const create = Effect.gen(function* () {
      const owner = { accountId: yield* newAccountId, inboxId: Inbox.idOf(yield* newReservationId) }
      yield* inboxes.create({ ...owner, lifetime: 3_600, label: null })
      return (yield* inboxes.show(owner)).address
    })
    return yield* Effect.forEach(Array.from({ length: count }), () => create, { concurrency: 256 })
  })
