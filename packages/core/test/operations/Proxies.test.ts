/** The operations of proxies, over nodes that are announced. */
import { MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as Proxies from "../../src/operations/Proxies.ts"
import { type ProxyNode, ProxyNodes } from "../../src/proxies/ProxyNodes.ts"
import * as ProxySession from "../../src/proxies/ProxySession.ts"
import { ProxySessions } from "../../src/proxies/ProxySessions.ts"
import { ProxyUpkeep } from "../../src/proxies/ProxyUpkeep.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"

const layer = ProxyUpkeep.layer().pipe(
  Layer.provideMerge(Layer.mergeAll(ProxySessions.layer(), ProxyNodes.layer)),
  Layer.provide(Vault.layer),
  Layer.provideMerge(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer("7a".repeat(32))))),
  Layer.provideMerge(TestClock.layer())
)

const run = <A, E>(body: Effect.Effect<A, E, Layer.Success<typeof layer>>) => Effect.runPromise(Effect.provide(body, layer))

const node = (country: string, region: string | null, ...protocols: ReadonlyArray<ProxySession.Protocol>): ProxyNode => ({
  country,
  region,
  host: `${country.toLowerCase()}.example.com`,
  endpoints: [{ protocol: "socks5h", port: 1080 }, ...protocols.map((protocol) => ({ protocol, port: 8080 }))],
  exits: ["192.0.2.7", "192.0.2.8"]
})

const caller = (n: number) => ({ accountId: "acc_1", requestId: "req", reservationId: `res_01M7YKD46JCP6VGMKADN3JSPJ${n}` })

const open = (asked: Parameters<typeof Proxies.createSession.run>[0], n = 1) =>
  Effect.map(Proxies.createSession.run(asked, caller(n)), ({ data }) => data)
const refusal = (asked: Parameters<typeof Proxies.createSession.run>[0]) =>
  Effect.map(Effect.flip(Proxies.createSession.check(asked, caller(1))), (error) => ("field" in error ? error.field : error._tag))
const countries = (where: Parameters<typeof Proxies.locations.run>[0]) =>
  Effect.map(Proxies.locations.run(where, caller(1)), ({ data }) => data.locations.map(({ country }) => country))

const announced = Effect.gen(function* () {
  const { keep } = yield* ProxyNodes
  yield* keep("node_1", node("DE", "Hesse", "http"))
  yield* keep("node_2", node("DE", "Bavaria"))
  yield* keep("node_3", node("FR", null, "http", "https"))
})

describe("proxy locations", () => {
  test("are those of the nodes that serve now: none before, and none after", () =>
    run(
      Effect.gen(function* () {
        const isConfigured = Effect.map(Effect.result(Proxies.createSession.configured), Result.isSuccess)
        expect(yield* isConfigured).toBe(false)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* announced
            expect(yield* isConfigured).toBe(true)
            // It is renewed
            yield* TestClock.adjust("10 minutes")
            expect((yield* Proxies.locations.run({}, caller(1))).data.locations).toEqual([
              { country: "DE", name: "Germany", regions: ["Bavaria", "Hesse"], available_nodes: 2, protocols: ["http", "socks5h"] },
              { country: "FR", name: "France", regions: [], available_nodes: 1, protocols: ["http", "https", "socks5h"] }
            ])
          })
        )
        expect(yield* isConfigured).toBe(false)
      })
    ))

  test("are selected by country, code or name, and region, in any case", () =>
    run(
      Effect.scoped(
        Effect.gen(function* () {
          yield* announced
          expect(yield* countries({ country: "de" })).toEqual(["DE"])
          expect(yield* countries({ country: "FRANCE" })).toEqual(["FR"])
          expect(yield* countries({ region: "hesse" })).toEqual(["DE"])
          expect(yield* countries({ country: "FR", region: "Hesse" })).toEqual([])
          expect(yield* countries({ country: "Atlantis" })).toEqual([])
        })
      )
    ))

  test("forget a node that died within half a minute", () =>
    run(
      Effect.gen(function* () {
        const { list } = yield* ProxyNodes
        const store = yield* StateStore.StateStore
        const rows = yield* Effect.scoped(Effect.andThen(announced, store.list("proxyNodes")))
        // As a process leaves them that was killed
        for (const { expiresAt, key, value } of rows)
          yield* store.write([{ _tag: "put", space: "proxyNodes", key, value, expiresAt: expiresAt ?? Number.NaN }])
        yield* TestClock.adjust("29 seconds")
        expect(yield* list).toHaveLength(3)
        yield* TestClock.adjust("2 seconds")
        expect(yield* list).toEqual([])
      })
    ))
})

describe("a proxy session", () => {
  test("is at a node that has what was asked for; else the field that nobody has is named", () =>
    run(
      Effect.scoped(
        Effect.gen(function* () {
          yield* announced
          expect(yield* open({ country: "DE", protocol: "http" })).toMatchObject({ host: "de.example.com", port: 8080, protocol: "http" })
          expect(yield* open({ country: "france" }, 2)).toMatchObject({ country: "FR", protocol: "http" })
          expect(yield* open({ region: "Bavaria" }, 3)).toMatchObject({ country: "DE", port: 1080, protocol: "socks5h" })
          expect(yield* refusal({ country: "IT" })).toBe("country")
          expect(yield* refusal({ country: "DE", region: "Saxony" })).toBe("region")
          expect(yield* refusal({ country: "DE", protocol: "https" })).toBe("protocol")
          expect(yield* refusal({ protocol: "socks5" })).toBe("protocol")
        })
      )
    ))

  test("has credentials that its id and the log vouch for, is the same when it is recovered, and expires in the log", () =>
    run(
      Effect.scoped(
        Effect.gen(function* () {
          yield* announced
          const sessions = yield* ProxySessions
          expect(yield* Proxies.createSession.recover?.(caller(1).reservationId) ?? Effect.die("no recovery")).toBeUndefined()
          const opened = yield* open({ mode: "sticky" })
          const { password, session_id: id, username } = opened
          expect([username, password.length]).toEqual([id, 43])
          expect(yield* Proxies.createSession.recover?.(caller(1).reservationId) ?? Effect.die("no recovery")).toEqual({ data: opened })
          expect((yield* open({}, 2)).password).not.toBe(password)
          expect(yield* sessions.admit(id, password)).toMatchObject({ status: "open", ip: opened.ip })
          expect(yield* sessions.admit(id, `${password}x`)).toBeUndefined()
          expect(yield* sessions.admit("proxy_nothing", password)).toBeUndefined()
          yield* TestClock.adjust("59 minutes")
          expect(yield* sessions.admit(id, password)).toBeDefined()
          yield* TestClock.adjust("1 minute")
          expect(yield* sessions.admit(id, password)).toBeUndefined()
          yield* TestClock.adjust("1 minute")
          expect((yield* sessions.find(id))?.session.status).toBe("expired")
          expect(ProxySession.isId(id)).toBe(true)
        })
      )
    ))
})
