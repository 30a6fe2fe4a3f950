/** What can happen to a proxy session. */
import { Result } from "effect"
import { describe, expect, test } from "vitest"
import * as ProxySession from "../../src/proxies/ProxySession.ts"

const { ProxySession: decider } = ProxySession

const terms = {
  accountId: "acc_1",
  protocol: "socks5h",
  mode: "sticky",
  country: "DE",
  region: null,
  host: "proxy.example.com",
  port: 1080,
  ip: "192.0.2.7",
  passwordHash: ProxySession.hashOf("right"),
  byteLimit: 1_000,
  connectionLimit: 4
} as const

type Decide = (session: ProxySession.ProxySession, now: number) => ReturnType<typeof ProxySession.expire>

/** Takes decisions one after another; each at its time. */
const after = (...steps: ReadonlyArray<readonly [at: number, decide: Decide]>) => {
  const told: Array<string> = []
  let session: ProxySession.ProxySession = decider.initial
  for (const [at, decide] of steps)
    for (const event of Result.getOrThrow(decide(session, at))) {
      const { data, type } = decider.codec.encode(event)
      session = decider.evolve(session, decider.codec.decode(type, data), at)
      told.push(type)
    }
  return { session, told }
}

const opened = [1_000, ProxySession.begin({ ...terms, lifetime: 60_000 })] as const
const counted = (at: number, node: string, sent: number, received: number, connections = 1) =>
  [at, ProxySession.count(node, { sent, received, connections })] as const
const expired = (at: number) => [at, ProxySession.expire] as const

describe("a proxy session", () => {
  test("is opened once, under its id", () => {
    const { session, told } = after(opened, [2_000, ProxySession.begin({ ...terms, country: "FR", lifetime: 1 })])
    expect(told).toEqual(["ProxySessionOpened"])
    expect(session).toMatchObject({ status: "open", country: "DE", expiresAt: 61_000 })
  })

  test("admits its password until its expiry, whether or not that was written", () => {
    const { session } = after(opened)
    const admitted = (password: string, now: number) => ProxySession.admits(session, password, now)
    expect([admitted("right", 60_999), admitted("right", 61_000), admitted("wrong", 2_000), admitted("", 2_000)]).toEqual([
      true,
      false,
      false,
      false
    ])
    expect(ProxySession.admits(decider.initial, "right", 0)).toBe(false)
  })

  test("expires at its expiry, once, and not before", () => {
    expect(after(opened, expired(60_999)).told).toEqual(["ProxySessionOpened"])
    const { session, told } = after(opened, expired(61_000), expired(61_001))
    expect(told).toEqual(["ProxySessionOpened", "ProxySessionExpired"])
    expect(ProxySession.isLive(session, 2_000)).toBe(false)
  })

  test("counts the totals of each node, each once, also after its end", () => {
    const { session, told } = after(
      opened,
      counted(2_000, "node_a", 10, 20),
      counted(2_000, "node_b", 1, 2, 3),
      counted(2_001, "node_a", 10, 20),
      counted(2_002, "node_a", 5, 20),
      expired(61_000),
      counted(61_001, "node_a", 11, 20)
    )
    expect(told.filter((type) => type === "ProxyTrafficCounted")).toHaveLength(3)
    expect(session.status !== "absent" && ProxySession.trafficOf(session)).toEqual({ sent: 12, received: 22, connections: 4 })
    expect(session.status).toBe("expired")
  })

  test("counts what comes within the grace after its end, whether or not that was written, and nothing later", () => {
    const until = 61_000 + ProxySession.COUNT_GRACE
    for (const end of [[], [expired(61_000)]]) {
      const { session, told } = after(opened, ...end, counted(until, "node_a", 1, 0), counted(until + 1, "node_a", 2, 0))
      expect(told.filter((type) => type === "ProxyTrafficCounted")).toHaveLength(1)
      expect(session.status !== "absent" && session.traffic).toEqual({ node_a: { sent: 1, received: 0, connections: 1 } })
    }
    // The end of one whose bytes are used up is before its expiry
    const ended = 2_000 + ProxySession.COUNT_GRACE
    const used = after(opened, counted(2_000, "node_a", 1_000, 0), counted(ended, "node_b", 1, 0), counted(ended + 1, "node_b", 2, 0))
    expect(used.told.slice(1)).toEqual(["ProxyTrafficCounted", "ProxySessionEnded", "ProxyTrafficCounted"])
  })

  test("of an earlier build is counted without a bound", () => {
    const earlier: ProxySession.ProxySessionEvent = { _tag: "ProxySessionOpened", ...terms, expiresAt: 61_000 }
    const session = decider.evolve(decider.initial, earlier, 1_000)
    expect(Result.getOrThrow(ProxySession.count("node_a", { sent: 1, received: 0, connections: 1 })(session, 1e15))).toHaveLength(1)
  })

  test("ends when its bytes are used up, over all nodes together", () => {
    const { session, told } = after(opened, counted(2_000, "node_a", 400, 0), counted(2_000, "node_b", 300, 299))
    expect([session.status, told.at(-1)]).toEqual(["open", "ProxyTrafficCounted"])
    const over = after(opened, counted(2_000, "node_a", 400, 0), counted(2_000, "node_b", 300, 300), counted(2_000, "node_b", 300, 301))
    expect(over.told.slice(2)).toEqual(["ProxyTrafficCounted", "ProxySessionEnded", "ProxyTrafficCounted"])
    expect([over.session.status, after(opened, expired(61_000)).session.status]).toEqual(["ended", "expired"])
    expect(ProxySession.admits(over.session, "right", 2_000)).toBe(false)
  })

  test("is ended by an administrator, once, while it can be used, and is counted for the grace after that", () => {
    const ended = [3_000, ProxySession.end] as const
    const until = 3_000 + ProxySession.COUNT_GRACE
    const { session, told } = after(opened, ended, ended, counted(until, "node_a", 1, 0), counted(until + 1, "node_a", 2, 0))
    expect(told).toEqual(["ProxySessionOpened", "ProxySessionEnded", "ProxyTrafficCounted"])
    expect([session.status, ProxySession.admits(session, "right", 3_000)]).toEqual(["ended", false])
    expect(after(opened, [61_000, ProxySession.end]).told).toEqual(["ProxySessionOpened"])
    expect(after(ended).told).toEqual([])
  })

  test("is nothing before it is opened", () => {
    expect(after(counted(1, "node_a", 1, 1), expired(1)).told).toEqual([])
  })

  test("of a log that cannot be is refused", () => {
    const { session } = after(opened, counted(2_000, "node_a", 10, 20))
    const { session: ended } = after(opened, expired(61_000))
    const refused: ReadonlyArray<readonly [ProxySession.ProxySession, ProxySession.ProxySessionEvent, number, string]> = [
      [session, { _tag: "ProxySessionOpened", ...terms, expiresAt: 1 }, 3_000, "opened once"],
      [session, { _tag: "ProxyTrafficCounted", node: "node_a", sent: 9, received: 20, connections: 1 }, 3_000, "never falls"],
      [session, { _tag: "ProxySessionExpired" }, 60_999, "not before"],
      [session, { _tag: "ProxySessionEnded", reason: "bytes" }, 3_000, "used up"],
      [ended, { _tag: "ProxySessionExpired" }, 62_000, "ends once"],
      [decider.initial, { _tag: "ProxySessionExpired" }, 62_000, "opened first"]
    ]
    for (const [state, event, at, reason] of refused) expect(() => decider.evolve(state, event, at), reason).toThrow(reason)
  })
})
