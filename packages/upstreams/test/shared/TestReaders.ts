/** Readers of a test: of a configured service, and of callers' hosts. */
import { Effect, Schema, type Scope } from "effect"
import { TestClock } from "effect/testing"
import * as PublicReader from "../../src/shared/PublicReader.ts"

export const HERE = "127.0.0.1"

export const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const Thing = Schema.Struct({ name: Schema.String })

export const LIMITS = { upstream: "things", retries: 0, byteLimit: 10_000, timeLimit: "10 seconds" } as const

/** Reads from a service that the host has configured. */
export const configured = (base: URL, options: Partial<PublicReader.Options> = {}) =>
  Effect.map(PublicReader.make({ ...LIMITS, base, resolve: nowhere, ...options }), (reader) => {
    const read = reader.json(Thing, "thing")
    return (path = "/thing", request: Partial<PublicReader.Request> = {}) => read({ url: new URL(path, base), ...request })
  })

const nowhere = () => Promise.reject(Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }))

/** Reads from callers' hosts. The one address of this machine passes for a public one. `names` are resolved in turn. */
export const ofCallers = (
  { port }: URL,
  names: Readonly<Record<string, ReadonlyArray<string>>> = {},
  options: Partial<PublicReader.Options> = {}
) => {
  const asked: Array<string> = []
  const resolve = (name: string) => {
    const turns = names[name]
    const address = turns?.[Math.min(asked.filter((other) => other === name).length, turns.length - 1)]
    asked.push(name)
    return address === undefined ? nowhere() : Promise.resolve([{ address, family: 4 as const }])
  }
  const isAllowed = (address: string) => address === HERE
  return Effect.map(PublicReader.make({ ...LIMITS, isAllowed, resolve, ports: [Number(port)], ...options }), (reader) => {
    const read = reader.json(Thing, "thing")
    return { asked, read: (url: string) => read({ url: new URL(url.replace("PORT", port)) }) }
  })
}

export const good = { name: "a thing" }
