/**
 * A host that approves a manual payment and is killed the moment an event of a type is in the log:
 * `node PayingProcess.ts <database> <payment> <type>`.
 */
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { EventStore } from "@millrace/event-sourcing"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer } from "effect"
import { createMillrace } from "../../packages/millrace/src/index.ts"

const [database = "", payment = "", type = ""] = process.argv.slice(2)

const killed = Effect.andThen(
  Effect.sync(() => process.kill(process.pid, "SIGKILL")),
  Effect.never
)

/** The log, which kills this process after it has appended such an event. */
const log = Layer.effect(
  EventStore.EventStore,
  Effect.map(EventStore.EventStore, (store) => ({
    ...store,
    append: (...append: Parameters<typeof store.append>) =>
      Effect.tap(store.append(...append), () => (append[2].some((event) => event.type === type) ? killed : Effect.void))
  }))
).pipe(Layer.provide(SqliteEventStore.layer({ filename: database })))

if (import.meta.main) {
  const millrace = await createMillrace({
    store: Layer.merge(log, SqliteStateStore.layer({ filename: database.replace(/\.db$/u, ".state.db") })),
    masterKey: readFileSync(join(dirname(database), "master.key"), "utf8").trim(),
    standard: ["billing"],
    payments: { gateway: "manual" },
    log: {}
  })
  await millrace.payments.approve(payment, { by: "ada" })
  await millrace.close()
}
