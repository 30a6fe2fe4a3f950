/**
 * Price alerts over real stores and a real SMTP server: a host is killed while it sends a mail, and two hosts take up the same prices at
 * once. Each fall is mailed once at most.
 */
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import {
  Ledger,
  MasterKey,
  newReservationId,
  PriceAlert,
  PriceAlerts,
  PriceAlertUpkeep,
  PriceObservations,
  ProductIdentity,
  PublicAddress,
  Registration,
  Vault
} from "@millrace/core"
import { EventStore } from "@millrace/event-sourcing"
import { PostgresEventStore, PostgresStateStore } from "@millrace/event-store-postgres"
import * as SmtpRelay from "@millrace/upstreams/mail-relay"
import { Clock, Context, Effect, Layer, Logger, Schedule, type Scope, Stream } from "effect"
import { describe, expect, test } from "vitest"
import * as Postgres from "../../packages/event-store-postgres/test/Postgres.ts"
import * as WrongClock from "../../packages/testing/src/WrongClock.ts"
import * as DroppingServer from "../../packages/upstreams/test/mail/DroppingServer.ts"
import { registering, services } from "./AlertingProcess.ts"
import { newStore, Process } from "./Server.ts"

const URL_OF_MUG = "https://shop.example.com/products/mug"

const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  test(name, { timeout: 90_000 }, () => Effect.runPromise(Effect.asVoid(body).pipe(Effect.scoped, Effect.provide(Logger.layer([])))))

/** An account with an alert of a product. */
const registered = Effect.fnUntraced(function* (email: string, url = URL_OF_MUG) {
  const registration = yield* Registration
  const accountId = yield* registration.open(email)
  yield* registration.verify(accountId)
  const { register } = yield* PriceAlerts
  const identity = ProductIdentity.identityOf({ url }) ?? ""
  return yield* register({ accountId, identity, name: "Blue mug", url, target: "20", reservationId: yield* newReservationId })
})

const read = (price: string, url = URL_OF_MUG) =>
  PriceObservations.use(({ record }) => record([{ names: [{ url }], price, currency: null }]))

/** The types of the events of alerts. */
const typesIn = EventStore.EventStore.use(({ readAll }) =>
  Effect.map(Stream.runCollect(readAll(EventStore.start)), (log) =>
    log.filter(({ stream }) => stream.startsWith("priceAlert-")).map(({ type }) => type)
  )
)

/** Asks until it is so. */
const until = <E, R>(isIt: Effect.Effect<boolean, E, R>) =>
  Effect.asVoid(Effect.repeat(isIt, { until: (is) => is, schedule: Schedule.spaced("50 millis") }))

/** Runs it later, by milliseconds. */
const ahead =
  (ahead: number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(WrongClock.make({ ahead }), (clock) => Effect.provideService(effect, Clock.Clock, clock))

describe("a host that is killed", () => {
  const script = fileURLToPath(new URL("AlertingProcess.ts", import.meta.url))
  const STEPS = [
    ["sending", 0, "before the relay has the mail"],
    ["sent", 1, "after the relay took the mail, before that is noted"]
  ] as const

  for (const [step, arrived, when] of STEPS)
    testing(
      `${when}, leaves it in doubt, and no host sends it again`,
      Effect.gen(function* () {
        const { file } = newStore()
        writeFileSync(join(dirname(file), "master.key"), randomBytes(32).toString("hex"))
        const server = yield* DroppingServer.serve(() => undefined)
        const relay = `smtp://127.0.0.1:${server.port}`
        yield* Effect.scoped(
          Effect.gen(function* () {
            const context = yield* Layer.build(Layer.fresh(registering(file, relay, "never")))
            yield* Effect.provideContext(Effect.andThen(registered("ada@example.com"), read("19.9")), context)
          })
        )
        const process = new Process([file, relay, step], { script, nodeArgs: ["--conditions=@millrace/source"] })
        expect((yield* Effect.promise(() => process.ended)).code).toBe(null)
        expect(server.arrived).toHaveLength(arrived)
        // The next host, once the mail is in doubt, and one of the next day, which would send it again
        for (const later of [PriceAlert.DOUBT_AFTER + 60_000, 27 * 3_600_000])
          yield* Effect.gen(function* () {
            const context = yield* Layer.build(Layer.fresh(services(file, relay, "never")))
            const run = Effect.provideContext(context)
            yield* until(Effect.map(run(typesIn), (types) => types.at(-1) === "AlertMailInDoubt"))
            yield* until(
              Effect.map(
                run(PriceAlertUpkeep.use(({ status }) => status)),
                ({ mails, prices }) => prices.leader && mails?.leader === true && mails.projection.caughtUp
              )
            )
            expect(yield* run(typesIn)).toEqual(["PriceAlertRegistered", "PriceAlertReached", "AlertMailSending", "AlertMailInDoubt"])
          }).pipe(Effect.scoped, ahead(later))
        expect(server.arrived).toHaveLength(arrived)
      })
    )
})

describe("two hosts on PostgreSQL", () => {
  testing(
    "that read the same prices at once mail each fall once, though the relay refuses at times",
    Effect.gen(function* () {
      let asked = 0
      const server = yield* DroppingServer.serve(() => (asked++ % 40 === 7 ? { at: "mail", instead: "451 later" } : undefined))
      const at = yield* Postgres.schema
      const key = randomBytes(32).toString("hex")
      const host = Effect.map(
        Layer.build(
          Layer.fresh(
            PriceAlertUpkeep.layer({ sweepEvery: "1 second" }).pipe(
              Layer.provideMerge(PriceAlerts.layer),
              Layer.provideMerge(Layer.merge(PriceObservations.layer, Registration.layer())),
              Layer.provideMerge(Layer.mergeAll(Ledger.layer(), Vault.Vault.layer)),
              Layer.provideMerge(
                Layer.mergeAll(
                  PostgresEventStore.layer(at),
                  PostgresStateStore.layer(at),
                  Layer.orDie(MasterKey.layer(key)),
                  SmtpRelay.layer({ url: new URL(`smtp://127.0.0.1:${server.port}`), from: "no-reply@example.com" }),
                  Layer.succeed(PublicAddress, { url: Effect.succeed(new URL("https://api.example.com")), service: "Example" })
                )
              )
            )
          )
        ),
        (context) => ({ run: Effect.provideContext(context), events: Context.get(context, EventStore.EventStore) })
      )
      const [here, there] = [yield* host, yield* host]
      const urls = Array.from({ length: 5 }, (_, i) => `${URL_OF_MUG}-${i}`)
      const alerts = yield* Effect.forEach(urls, (url, i) => here.run(registered(`user${i}@example.com`, url)))
      const tell = Effect.map(here.run(typesIn), (types) => types.filter((type) => type === "AlertMailSent" || type === "AlertMailRefused"))
      for (const round of [1, 2]) {
        for (const price of ["30", "20", "19"])
          yield* Effect.forEach(
            urls.flatMap((url) => [here, there].map(({ run }) => run(read(price, url)))),
            (reading) => reading,
            { concurrency: "unbounded", discard: true }
          )
        yield* until(Effect.map(tell, (types) => types.length >= round * urls.length))
      }
      const ids = server.arrived.map((mail) => /^Message-ID:\s*<(?<id>[^>]+)>/imu.exec(mail)?.groups?.["id"])
      expect(new Set(ids).size).toBe(ids.length)
      const expected = alerts.flatMap(({ alertId }) => [1, 2].map((fall) => `price-alert.${alertId}.${fall}@api.example.com`))
      for (const id of ids) expect(expected).toContain(id)
      // What was refused waits for its next attempt
      expect(ids.length + (yield* tell).filter((type) => type === "AlertMailRefused").length).toBe(expected.length)
    })
  )
})
