/**
 * A host that sends the mails of price alerts and is killed at a step: `node AlertingProcess.ts <database> <relay> <step>`. `sending`: the
 * moment it is in the log that a mail is sent. `sent`: the moment the relay has taken the mail, before the log has it. `never`: not at all.
 */
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Ledger, MasterKey, PriceAlerts, PriceAlertUpkeep, PriceObservations, PublicAddress, Registration, Vault } from "@millrace/core"
import { EventStore } from "@millrace/event-sourcing"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import * as SmtpRelay from "@millrace/upstreams/mail-relay"
import { Effect, Layer } from "effect"

const killed = Effect.andThen(
  Effect.sync(() => process.kill(process.pid, "SIGKILL")),
  Effect.never
)

/** The log, which kills this process before it appends such an event, or after it. */
const logOf = (database: string, step: string) =>
  Layer.effect(
    EventStore.EventStore,
    Effect.map(EventStore.EventStore, (store) => ({
      ...store,
      append: (...append: Parameters<typeof store.append>) => {
        const has = (tag: string) => append[2].some(({ type }) => type === tag)
        if (step === "sent" && has("AlertMailSent")) return killed
        return Effect.tap(store.append(...append), () => (step === "sending" && has("AlertMailSending") ? killed : Effect.void))
      }
    }))
  ).pipe(Layer.provide(SqliteEventStore.layer({ filename: database })))

/** What a host has that registers alerts and reads prices. */
export const registering = (database: string, relay: string, step: string) =>
  PriceAlerts.layer.pipe(
    Layer.provideMerge(Layer.merge(PriceObservations.layer, Registration.layer())),
    Layer.provideMerge(Layer.mergeAll(Ledger.layer(), Vault.Vault.layer)),
    Layer.provideMerge(
      Layer.mergeAll(
        logOf(database, step),
        SqliteStateStore.layer({ filename: database.replace(/\.db$/u, ".state.db") }),
        Layer.orDie(MasterKey.layer(readFileSync(join(dirname(database), "master.key"), "utf8").trim())),
        SmtpRelay.layer({ url: new URL(relay), from: "no-reply@example.com" }),
        Layer.succeed(PublicAddress, { url: Effect.succeed(new URL("https://api.example.com")), service: "Example" })
      )
    )
  )

/** The same, with what takes up prices and sends mails. */
export const services = (database: string, relay: string, step: string) =>
  PriceAlertUpkeep.layer().pipe(Layer.provideMerge(registering(database, relay, step)))

if (import.meta.main) {
  const [database = "", relay = "", step = ""] = process.argv.slice(2)
  await Effect.runPromise(Effect.scoped(Effect.andThen(Layer.build(services(database, relay, step)), Effect.never)))
}
