/** What an attacker learns from the work that a host does for an address, and what pages of other sites can make a browser do. */
import { randomBytes } from "node:crypto"
import { RandomBytes, Registration } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Layer, Stream } from "effect"
import { describe, expect } from "vitest"
import { CurrentExchange } from "../src/Exchange.ts"
import { host, testing } from "./Host.ts"
import { ADA, BROWSER, browserAt, codeOf, type Json, signedIn, tokenIn } from "./Person.ts"

const NOBODY = "nobody@example.com"

/** The kind of a stream, without its id. */
const kindOf = (name: string): string => name.replace(/-.*$/u, "")

/** The kinds of streams of people and their accounts. */
const OF_SIGN_IN = new Set(["signIn", "session", "email", "account"])

/** Stores and a source of random bytes that write down what requests ask of them, in order. Work in the background is not of a request. */
const watched = Effect.gen(function* () {
  const work: Array<string> = []
  const events = yield* MemoryEventStore.make
  const states = yield* MemoryStateStore.make
  // Commands of one stream run in batches, in a fiber of their own, so streams are told by their kind
  const notedStream = (what: string, name: string) =>
    Effect.sync(() => {
      if (OF_SIGN_IN.has(kindOf(name))) work.push(`${what} ${kindOf(name)}`)
    })
  const notedState = (what: string, space: string) =>
    Effect.map(Effect.context<never>(), (context) => {
      if (context.mapUnsafe.has(CurrentExchange.key)) work.push(`${what} ${space}`)
    })
  const watchedEvents: EventStore.EventStore["Service"] = {
    ...events,
    append: (stream, expected, written) =>
      Effect.andThen(notedStream(`append ${written.map(({ type }) => type).join()} to`, stream), events.append(stream, expected, written)),
    readStream: (stream, options) => Stream.unwrap(Effect.map(notedStream("read", stream), () => events.readStream(stream, options))),
    lastRevision: (stream) => Effect.andThen(notedStream("confirm", stream), events.lastRevision(stream)),
    loadSnapshot: (name) => Effect.andThen(notedStream("load", name), events.loadSnapshot(name)),
    saveSnapshot: (name, snapshot) => Effect.andThen(notedStream("save", name), events.saveSnapshot(name, snapshot))
  }
  const watchedStates: StateStore.StateStore["Service"] = {
    ...states,
    get: (space, key) => Effect.andThen(notedState("get", space), states.get(space, key)),
    list: (space, options) => Effect.andThen(notedState("list", space), states.list(space, options)),
    write: (changes) =>
      Effect.andThen(
        Effect.forEach(changes, ({ _tag, space }) => notedState(_tag, space)),
        states.write(changes)
      )
  }
  const draws = Layer.succeed(RandomBytes, (size) => {
    work.push(`draw ${size} bytes`)
    return randomBytes(size)
  })
  const watchedHost = yield* host({
    sessions: true,
    signInLimits: { address: { limit: 1_000, window: 60 }, client: { limit: 1_000, window: 60 } },
    events: Layer.merge(Layer.succeed(EventStore.EventStore, watchedEvents), draws),
    states: Layer.succeed(StateStore.StateStore, watchedStates)
  })
  return { at: watchedHost, work }
})

/** The work of one request. */
const workOf = <A, E, R>(work: Array<string>, request: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    work.length = 0
    yield* request
    return [...work]
  })

describe("the work for an address", () => {
  testing(
    "is the same, step by step, whether it is unknown, signed up, verified, suspended or erased",
    Effect.gen(function* () {
      const { at, work } = yield* watched
      const accountOf = Effect.fnUntraced(function* (address: string) {
        return String((yield* (yield* signedIn(at, address)).current).json.data.account_id)
      })
      yield* browserAt(at).signUp("waits@example.com")
      yield* accountOf(ADA)
      const suspended = yield* accountOf("suspended@example.com")
      const erased = yield* accountOf("erased@example.com")
      yield* at.run(Effect.flatMap(Registration, ({ erase, suspend }) => Effect.andThen(suspend(suspended), erase(erased))))
      const addresses = [NOBODY, "waits@example.com", ADA, "suspended@example.com", "erased@example.com", " ADA@Example.COM "]
      for (const act of ["signUp", "askForLink"] as const) {
        // The first request of a host may fill its caches
        yield* browserAt(at)[act]("first@example.com")
        const works = yield* Effect.forEach(addresses, (address) => workOf(work, browserAt(at)[act](address)))
        const [unknown = []] = works
        expect(unknown.some((step) => /^append SignIn\w+ to signIn$/u.test(step))).toBe(true)
        expect(unknown.filter((step) => step.startsWith("draw")).length).toBeGreaterThan(1)
        for (const [index, steps] of works.entries()) expect([addresses[index], steps]).toEqual([addresses[index], unknown])
      }
    })
  )
})

// what pages of other sites can make a browser do

interface Listed {
  readonly method: string
  /** With the examples of its parameters. */
  readonly path: string
  readonly body: object | undefined
}

/** Every operation of the document that a session may call. */
const operationsOf = (document: Json): ReadonlyArray<Listed> =>
  Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods)
      .filter(([, { security }]) => security?.some((one: Json) => "session" in one))
      .map(([method, { parameters = [], requestBody }]) => ({
        method: method.toUpperCase(),
        path: parameters.reduce(
          (filled: string, { example, in: place, name }: Json) =>
            place === "path" ? filled.replace(`{${name}}`, encodeURIComponent(String(example ?? "x"))) : filled,
          path
        ),
        body: requestBody?.content?.["application/json"]?.example ?? (requestBody === undefined ? undefined : {})
      }))
  )

describe("every operation of the document that a session may call", () => {
  testing(
    "is refused to a page of another site, and without the session's token where it changes something; nothing is written",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const victim = yield* signedIn(at)
      const token = yield* victim.csrf
      const operations = operationsOf((yield* at.call("/api/v1/openapi.json")).json)
      expect(operations.filter(({ method }) => method === "POST").length).toBeGreaterThan(10)
      expect(operations.map(({ method, path }) => `${method} ${path}`)).toEqual(
        expect.arrayContaining(["POST /api/v1/billing/topups", "POST /api/v1/account/keys", "DELETE /api/v1/sessions"])
      )
      const before = (yield* at.log).length
      for (const { body, method, path } of operations) {
        const attempts: ReadonlyArray<Record<string, string>> = [
          { "sec-fetch-site": "cross-site", ...token },
          { "sec-fetch-site": "same-site", ...token },
          ...(method === "GET" ? [] : [{ "sec-fetch-site": "same-origin" }, { "sec-fetch-site": "same-origin", "x-csrf-token": "x" }])
        ]
        for (const headers of attempts) {
          const refused = yield* victim.ask(path, { method, headers, ...(body === undefined ? {} : { body }) })
          expect([method, path, headers["sec-fetch-site"], ...codeOf(refused)]).toEqual([
            method,
            path,
            headers["sec-fetch-site"],
            403,
            "cross_site_request"
          ])
        }
      }
      expect((yield* at.log).length).toBe(before)
    })
  )
})

describe("a cookie of a browser that an attacker planted", () => {
  testing(
    "is replaced when its victim asks for a link, so the attacker cannot use the victim's link",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const attacker = browserAt(at)
      yield* attacker.askForLink("eve@example.com")
      const planted = attacker.jar.get(BROWSER) ?? ""
      const victim = browserAt(at)
      victim.jar.set(BROWSER, planted)
      yield* victim.askForLink()
      expect(victim.jar.get(BROWSER)).not.toBe(planted)
      expect(codeOf(yield* attacker.follow(tokenIn(at)))).toEqual([403, "sign_in_refused"])
      expect((yield* victim.follow(tokenIn(at))).status).toBe(201)
    })
  )
})

describe("an address of the host", () => {
  testing(
    "redirects nowhere, however it is written and whatever it names",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const browser = yield* signedIn(at)
      const paths = [
        "//evil.example",
        "//evil.example/sign-in",
        "/\\evil.example",
        "/%2f%2fevil.example",
        "/%5cevil.example/..",
        "/sign-in/",
        "/sign-in//evil.example",
        "/docs/",
        "/docs//evil.example/%2e%2e"
      ]
      const queries = ["", "?next=https://evil.example", "?redirect_uri=//evil.example", "?return_to=%2f%2fevil.example"]
      for (const path of ["/sign-in", "/docs", "/api/v1/sessions/current", ...paths])
        for (const query of queries) {
          const { headers, status } = yield* browser.ask(path + query)
          expect([path + query, status < 300 || status >= 400, headers.location, headers["refresh"]]).toEqual([
            path + query,
            true,
            undefined,
            undefined
          ])
        }
    })
  )
})
