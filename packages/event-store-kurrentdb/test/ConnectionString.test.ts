import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { parse } from "../src/ConnectionString.ts"

const parsed = (text: string) => Effect.runSync(parse(text))
const reasonOf = (text: string) => Effect.runSync(Effect.flip(parse(text))).reason

describe("a connection string", () => {
  it("accepts both schemes, and uses TLS by default", () => {
    for (const scheme of ["kurrentdb", "esdb"]) {
      expect(parsed(`${scheme}://db.example`)).toMatchObject({
        hosts: [{ address: "db.example", port: 2113 }],
        discover: false,
        user: undefined,
        tls: { authority: undefined, client: undefined, verify: true }
      })
      expect(parsed(`${scheme}://db.example:1?tls=false`).tls).toBeUndefined()
      expect(parsed(`${scheme}+discover://db.example`).discover).toBe(true)
    }
  })

  it("accepts several seeds, IPv6 addresses, and options in upper or lower case", () => {
    const { hosts, connectionName, gossipTimeout, defaultDeadline } = parsed(
      "kurrentdb://a:1,b,[::1]:3/?TLS=false&connectionname=a%26b&gossipTimeout=2&DefaultDeadline=750"
    )
    expect(hosts).toEqual([
      { address: "a", port: 1 },
      { address: "b", port: 2113 },
      { address: "[::1]", port: 3 }
    ])
    expect([connectionName, gossipTimeout, defaultDeadline]).toEqual(["a&b", 2, 750])
  })

  it("with a default deadline of -1 has the store's deadline, because no call may wait for ever", () =>
    expect(parsed("kurrentdb://a?defaultDeadline=-1").defaultDeadline).toBeUndefined())

  it("has no limits in the search for the leader where they are -1", () => {
    const { discoveryInterval, gossipTimeout, maxDiscoverAttempts } = parsed(
      "kurrentdb://a,b?maxDiscoverAttempts=-1&gossipTimeout=-1&discoveryInterval=-1"
    )
    expect([maxDiscoverAttempts, gossipTimeout, discoveryInterval]).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0])
  })

  it("returns any user and password unchanged", () =>
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.string(), (username, password) => {
        const text = `esdb://${encodeURIComponent(username)}:${encodeURIComponent(password)}@h`
        expect(parsed(text).user).toEqual({ username, password })
      })
    ))

  it("that is invalid is refused without showing its password", () => {
    const wrong = [
      "postgres://u:secret@h",
      "kurrentdb://",
      "kurrentdb://u:secret@h:99999",
      "kurrentdb://u:secret@h:port",
      "kurrentdb://u:secret@h?colour=red",
      "kurrentdb://u:secret@h?tls=maybe",
      "kurrentdb://u:secret@h?gossipTimeout=soon",
      "kurrentdb://u:secret@h?userCertFile=a.pem",
      "kurrentdb://u:secret@h?tlsCaFile=/nowhere/ca.pem",
      "kurrentdb+discover://u:secret@a,b",
      "kurrentdb://u:secret@h?nodePreference=follower",
      "kurrentdb://u:secret@h?throwOnAppendFailure=false",
      "kurrentdb://u:%zz@h"
    ]
    for (const text of wrong) expect(reasonOf(text)).not.toContain("secret")
  })
})
