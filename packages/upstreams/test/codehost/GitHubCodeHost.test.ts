import { CodeHost, InvalidInput, NotFound, UpstreamUnavailable } from "@millrace/core"
import { GitHubCodeHost } from "@millrace/upstreams"
import type { components } from "@octokit/openapi-types"
import { Context, Effect, Layer, Redacted, Schema, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, expectTypeOf, test } from "vitest"
import type * as Shapes from "../../src/codehost/GitHubShapes.ts"
import { faults, json, nobody, serve } from "../shared/LocalService.ts"
import { answer, events, repository, TOKEN, user } from "./GitHubServer.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const at = (baseUrl: URL, options: Partial<GitHubCodeHost.Options> = {}) =>
  Effect.map(Layer.build(GitHubCodeHost.layer({ baseUrl, retries: 0, ...options })), Context.get(CodeHost.CodeHost))

const token = Redacted.make(TOKEN)

const SEARCH = { q: "hello", sort: undefined, order: "desc", page: 1, per_page: 25 } as const
const NO_REPOSITORY = new NotFound({ resource: "repository" })

test("each field that is read is one of the API's", () => {
  type Schemas = components["schemas"]
  expectTypeOf<keyof typeof Shapes.User.Encoded>().toExtend<keyof Schemas["public-user"]>()
  expectTypeOf<keyof typeof Shapes.RepositoryDetail.Encoded>().toExtend<keyof Schemas["full-repository"]>()
  expectTypeOf<keyof (typeof Shapes.RepositorySearch.Encoded)["items"][number]>().toExtend<keyof Schemas["repo-search-result-item"]>()
  expectTypeOf<keyof (typeof Shapes.Events.Encoded)[number]>().toExtend<keyof Schemas["event"]>()
})

describe("a user", () => {
  test("is read without a token, and kept for a minute", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer())
        const host = yield* at(service.url)
        const { cache, data } = yield* host.user("octocat")
        expect(cache).toBe("miss")
        expect(data).toMatchObject({ login: "octocat", name: "The Octocat", followers: 3938, twitter_username: null })
        expect(Object.keys(data).sort()).toEqual(Object.keys(CodeHost.User.fields).sort())
        const { headers, path } = yield* service.received
        expect([path, headers["x-github-api-version"], headers.accept]).toEqual([
          "/users/octocat",
          "2022-11-28",
          "application/vnd.github+json"
        ])
        expect(headers).not.toHaveProperty("authorization")
        expect((yield* host.user("octocat")).cache).toBe("hit")
        yield* TestClock.adjust("61 seconds")
        expect(yield* host.user("octocat")).toEqual({ cache: "miss", data })
        expect((yield* service.received).headers).toHaveProperty("if-none-match")
      })
    ))

  test("is shown as everybody sees it, also to the owner of the token", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer())
        const host = yield* at(service.url, { token })
        expect(JSON.stringify(yield* host.user("octocat"))).not.toMatch(/private|two_factor/u)
        expect((yield* service.received).headers.authorization).toBe(`Bearer ${TOKEN}`)
      })
    ))

  test("has a name that can be no other path", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer())
        const host = yield* at(new URL("/api/v3", service.url))
        expect(yield* Effect.flip(host.user("dependabot[bot]"))).toEqual(new NotFound({ resource: "user" }))
        expect((yield* service.received).path).toBe("/api/v3/users/dependabot%5Bbot%5D")
        const { params } = CodeHost.user.route
        const decode = Schema.decodeUnknownResult(Schema.Struct({ ...params, ...CodeHost.repository.route.params }))
        for (const name of ["..", ".", "a/b", "a?b", "a#b", "a%2Fb", "", "é", "-a"])
          expect([name, decode({ username: name, owner: "a", repo: "b" })._tag]).toEqual([name, "Failure"])
        for (const repo of ["..", ".", "...", "a/b", ""])
          expect([repo, decode({ username: "a", owner: "a", repo })._tag]).toEqual([repo, "Failure"])
        for (const repo of [".github", "..a", "a.b-c_d"])
          expect([repo, decode({ username: "a", owner: "a", repo })._tag]).toEqual([repo, "Success"])
      })
    ))
})

describe("a repository", () => {
  test("is read as it was recorded, and found by its old name", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer())
        const host = yield* at(url)
        const { data } = yield* host.repository("octokit-fixture-org", "hello-world")
        const { archived, full_name, stargazers_count, subscribers_count } = repository
        expect(data).toMatchObject({ archived, full_name, stargazers_count, subscribers_count, license: null, parent: null })
        expect(data.owner).toMatchObject({ login: "octokit-fixture-org", type: "Organization" })
        expect(data).not.toHaveProperty("private")
        const moved = yield* host.repository("octokit-fixture-org", "rename-repository")
        expect(moved.data.full_name).toBe("octokit-fixture-org/rename-repository-newname")
      })
    ))

  test.each(["secret", "internal"])("that is %s does not exist, with or without a token that could see it", (name) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer())
        for (const options of [{}, { token }])
          expect(yield* Effect.flip((yield* at(url, options)).repository("octocat", name))).toEqual(NO_REPOSITORY)
      })
    )
  )

  test("that is a fork of a private one does not name it, and one that was taken down is none", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer())
        const host = yield* at(url)
        const { data } = yield* host.repository("octocat", "fork")
        expect([data.fork, data.parent]).toEqual([true, null])
        expect(yield* Effect.flip(host.repository("octocat", "taken-down"))).toEqual(NO_REPOSITORY)
      })
    ))
})

describe("a search", () => {
  test("asks for public repositories, with what was asked", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer())
        const host = yield* at(service.url, { token })
        const { data } = yield* host.search({ ...SEARCH, q: "hello is:private", sort: "stars", order: "asc", page: 3, per_page: 10 })
        expect(data.items.map(({ full_name }) => full_name)).toEqual([repository.full_name])
        expect(data.total_count).toBe(1)
        const { searchParams } = new URL((yield* service.received).path, service.url)
        expect(Object.fromEntries(searchParams)).toEqual({
          ...{ q: "is:public hello is:private", sort: "stars", order: "asc", page: "3", per_page: "10" }
        })
      })
    ))

  test("that the platform refuses is the caller's error", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer())
        const error = yield* Effect.flip((yield* at(url)).search({ ...SEARCH, q: "user:nobody" }))
        expect(error).toBeInstanceOf(InvalidInput)
        expect(error).toMatchObject({ field: "q" })
      })
    ))
})

describe("the activity of a user", () => {
  test("keeps each event apart by its type, with the payload that belongs to it", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer())
        const { data } = yield* (yield* at(url)).activity("octocat", { page: 1, per_page: 100 })
        expect(data.events.map(({ type }) => type)).toEqual(events.map(({ type }) => type))
        const payloads = data.events.map(({ payload }) => payload)
        expect(payloads[0]).toEqual({
          ref: "refs/heads/main",
          head: "a1",
          before: "b2",
          size: 1,
          commits: [{ sha: "a1", message: "Fix it" }]
        })
        expect(payloads[1]).toEqual({ ref: "refs/heads/main", head: "a1", before: "b2", size: null, commits: null })
        expect(payloads.at(-2)).toEqual({ action: "started" })
        // Of a type that is not known, all that was sent
        expect(payloads.at(-1)).toEqual(events.at(-1)?.payload)
        // Authors of commits did not publish their addresses here
        expect(JSON.stringify(data)).not.toContain("person@example.com")
        expect(data.next_page).toBeNull()
        const encoded = Schema.encodeUnknownSync(Schema.toCodecJson(CodeHost.UserActivity))(data)
        expect(encoded).toEqual(data)
      })
    ))

  test("leads from page to page", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer())
        const host = yield* at(url)
        const seen: Array<string> = []
        for (let page: number | null = 1; page !== null; ) {
          const { data }: { readonly data: CodeHost.UserActivity } = yield* host.activity("octocat", { page, per_page: 5 })
          seen.push(...data.events.map(({ type }) => type))
          page = data.next_page
        }
        expect(seen).toEqual(events.map(({ type }) => type))
      })
    ))

  test.each([
    ["a known event with a payload of another form", { ...events[0], payload: { ref: 7 } }],
    ["an event that not everybody may see", { ...events[0], public: false }],
    ["an event without an actor", { ...events.at(-1), actor: undefined }]
  ])("is an invalid reply with %s", (_, event) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json([event]))
        const error = yield* Effect.flip((yield* at(url)).activity("octocat", { page: 1, per_page: 5 }))
        expect(error).toMatchObject({ _tag: "UpstreamUnavailable", invalidReply: true })
      })
    )
  )
})

describe("the limits of the platform", () => {
  const NOW = 1_000

  test.each([
    ["the primary limit, which ends", 403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(NOW + 1_800) }, {}, 1_800],
    ["the primary limit with status 429", 429, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(NOW + 30) }, {}, 30],
    ["the primary limit, whose end is past", 403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1" }, {}, 60],
    ["a reset that makes no sense", 403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon" }, {}, 60],
    ["a reset in the far future", 403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1507651200000" }, {}, 3_600],
    ["a secondary limit with a time", 403, { "retry-after": "17" }, { message: "You have exceeded a secondary rate limit" }, 17],
    ["a secondary limit without one", 403, {}, { message: "You have exceeded a secondary rate limit. Please wait" }, 60],
    ["429 without a word", 429, {}, {}, 60]
  ])("are heeded: %s", (_, status, headers, body, seconds) =>
    run(
      Effect.gen(function* () {
        yield* TestClock.adjust(`${NOW} seconds`)
        let asked = 0
        const { url } = yield* serve(answer(() => (++asked === 1 ? { status, headers, body } : undefined)))
        const host = yield* at(url, { retries: 2, retryDelay: 0 })
        expect(yield* Effect.flip(host.user("octocat"))).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true, retryAfter: seconds })
        expect(yield* Effect.flip(host.repository("a", "b"))).toMatchObject({ isolated: true, retryAfter: seconds })
        expect(asked).toBe(1)
        // Searches have a limit of their own
        expect((yield* host.search(SEARCH)).data.total_count).toBe(1)
        yield* TestClock.adjust(`${seconds} seconds`)
        expect((yield* host.user("octocat")).data.login).toBe("octocat")
      })
    )
  )

  test("are not what a refusal of the token is", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json({ message: "Bad credentials" }, 403))
        const error = yield* Effect.flip((yield* at(url, { token })).user("octocat"))
        expect(error).toBeInstanceOf(UpstreamUnavailable)
        expect(error).not.toHaveProperty("retryAfter")
      })
    ))
})

test.each(faults(user, 100_000))("the platform is unavailable if it answers with %s", (_, answer) =>
  run(
    Effect.gen(function* () {
      const { url } = yield* serve(answer)
      const host = yield* at(url, { byteLimit: 100_000 })
      expect(yield* Effect.flip(host.user("octocat"))).toBeInstanceOf(UpstreamUnavailable)
    })
  )
)

test("the platform is unavailable if it cannot be reached", () =>
  run(
    Effect.gen(function* () {
      const host = yield* at(yield* nobody)
      expect(yield* Effect.flip(host.user("octocat"))).toBeInstanceOf(UpstreamUnavailable)
    })
  ))
