/** What can happen to a session and to a sign-in link. */
import { Result } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Session from "../../src/accounts/Session.ts"
import * as SignInLink from "../../src/accounts/SignInLink.ts"
import * as Token from "../../src/accounts/Token.ts"

const DAY = 24 * 3_600_000
const secretHash = Token.hashOf("right")

type Decide = (session: Session.Session, now: number) => ReturnType<typeof Session.use>

const STEPS: ReadonlyArray<Decide> = [
  Session.use,
  Session.expire,
  Session.end("signedOut"),
  Session.end("replaced"),
  // Most steps are uses, so that sessions live for long
  ...Array.from({ length: 12 }, () => Session.use)
]

/** Takes decisions one after another, with the events written and read as the log has them. */
const after = (steps: ReadonlyArray<readonly [at: number, decide: Decide]>) => {
  const { codec, evolve, initial } = Session.Session
  const told: Array<{ readonly type: string; readonly at: number }> = []
  let session: Session.Session = initial
  for (const [at, decide] of [
    [0, Session.begin({ accountId: "acc_1", secretHash, proof: "mailLink", proofId: null, sealedClient: null })] as const,
    ...steps
  ])
    for (const event of Result.getOrThrow(decide(session, at))) {
      const { data, type } = codec.encode(event)
      session = evolve(session, codec.decode(type, data), at)
      told.push({ type, at })
    }
  return { session, told }
}

const history = fc
  .array(fc.tuple(fc.oneof(fc.integer({ min: 0, max: 3 * DAY }), fc.integer({ min: 0, max: 31 * DAY })), fc.constantFrom(...STEPS)), {
    maxLength: 60
  })
  .map((steps) => {
    let at = 0
    return steps.map(([pause, decide]) => {
      at += pause
      return [at, decide] as const
    })
  })

describe("a session", () => {
  test("lives for 30 days from its last noted use, never past 90 days, and a use is noted once a day", () => {
    fc.assert(
      fc.property(history, (steps) => {
        const { session, told } = after(steps)
        if (session.status === "absent") throw new Error("It was opened")
        const ended = told.find(({ type }) => type === "SessionEnded")
        const uses = told.filter(({ type }) => type !== "SessionEnded").map(({ at }) => at)
        const endsAt = Math.min(Math.max(...uses) + 30 * DAY, 90 * DAY)
        expect(Session.endOf(session)).toBe(endsAt)
        expect(uses.every((at, i) => i === 0 || at - (uses[i - 1] ?? 0) >= DAY)).toBe(true)
        expect(uses.every((at) => at < 90 * DAY)).toBe(true)
        for (const now of [0, endsAt - 1, endsAt, endsAt + 1])
          expect(Session.admits(session, "right", now)).toBe(ended === undefined && now < endsAt)
        expect(Session.admits(session, "wrong", 0)).toBe(false)
      })
    )
  })

  test("ends once, and nothing happens to it afterwards", () => {
    fc.assert(
      fc.property(history, (steps) => {
        const { told } = after([
          ...steps,
          [1_000 * DAY, Session.expire],
          [1_001 * DAY, Session.use],
          [1_002 * DAY, Session.end("signedOut")]
        ])
        expect(told.findIndex(({ type }) => type === "SessionEnded")).toBe(told.length - 1)
        expect(told[0]?.type).toBe("SessionOpened")
      })
    )
  })

  test("is not admitted before it is opened", () => {
    expect(Session.admits(Session.Session.initial, "right", 0)).toBe(false)
  })
})

describe("a sign-in link", () => {
  const token = { id: "link_01JD7X2M9G4YQ0V5Z8K3T6W1RB", secret: "right" }
  const browser = "browser"
  const requested = {
    secretHash,
    browserHash: Token.hashOf(browser),
    sealedAddress: SignInLink.sealAddress(token, "ada@example.com"),
    provisional: null
  }
  const { evolve, initial } = SignInLink.SignInLink
  const link = Result.getOrThrow(SignInLink.request(requested)(initial, 0)).reduce((state, event) => evolve(state, event, 0), initial)

  test("is used by its secret, in its browser, once, within 15 minutes, in whatever order that is tried", () => {
    const tries = fc.array(
      fc.record({
        at: fc.integer({ min: 0, max: 20 * 60_000 }),
        secret: fc.constantFrom("right", "wrong", ""),
        browser: fc.constantFrom(browser, "another", undefined)
      }),
      { maxLength: 20 }
    )
    fc.assert(
      fc.property(tries, (tries) => {
        let state = link
        let uses = 0
        for (const attempt of tries) {
          const decided = SignInLink.use(attempt.secret, attempt.browser)(state, attempt.at)
          const isRight = attempt.secret === "right" && attempt.browser === browser && attempt.at < SignInLink.LIFETIME
          expect(Result.isSuccess(decided)).toBe(isRight && uses === 0)
          if (Result.isFailure(decided)) {
            // Who does not know the secret learns nothing. What became of the link counts more than the browser, which may have forgotten it
            const expected =
              attempt.secret !== "right" ? "unknown" : uses > 0 ? "used" : attempt.at >= SignInLink.LIFETIME ? "expired" : "browser"
            expect(decided.failure.reason).toBe(expected)
            continue
          }
          uses += 1
          state = decided.success.reduce((state, event) => evolve(state, event, attempt.at), state)
        }
        expect(uses).toBeLessThanOrEqual(1)
      })
    )
  })

  test("keeps the address for who has its secret, and for nobody else", () => {
    fc.assert(
      fc.property(fc.emailAddress(), fc.string(), (address, other) => {
        const sealed = SignInLink.sealAddress(token, address)
        expect(SignInLink.openAddress(token, sealed)).toBe(address)
        fc.pre(other !== token.secret)
        expect(SignInLink.openAddress({ ...token, secret: other }, sealed)).toBeUndefined()
        expect(SignInLink.openAddress({ ...token, id: "link_other" }, sealed)).toBeUndefined()
      })
    )
  })
})

describe("a token", () => {
  const random = (size: number) => crypto.getRandomValues(new Uint8Array(size))

  test("is read as it was written, and nothing else is read", () => {
    const id = "ses_01JD7X2M9G4YQ0V5Z8K3T6W1RB"
    const secret = Token.newSecret(random)
    // 256 bits
    expect(Buffer.from(secret, "base64url")).toHaveLength(32)
    expect(Token.parse("ses_", `${id}.${secret}`)).toEqual({ id, secret })
    for (const text of [
      "",
      id,
      secret,
      `${id}.`,
      `${id}.${secret}x`,
      `${id}.${secret} `,
      `${id}.${secret.slice(1)}`,
      `link_${id.slice(4)}.${secret}`
    ])
      expect(Token.parse("ses_", text)).toBeUndefined()
  })

  test("matches its own hash alone, and what derives from it does not reveal it", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(Token.matches(Token.hashOf(a), b)).toBe(a === b)
        expect(Token.isEqual(Token.derive(a, "csrf"), Token.derive(b, "csrf"))).toBe(a === b)
        expect(Token.derive(a, "csrf")).not.toBe(Token.derive(a, "other"))
      })
    )
  })
})
