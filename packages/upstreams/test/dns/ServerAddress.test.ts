import { getServers } from "node:dns"
import { isIP } from "node:net"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as ServerAddress from "../../src/dns/ServerAddress.ts"

const port = fc.integer({ min: 1, max: 65_535 })

describe("the address of a name server", () => {
  test("is parsed with a port and without", () =>
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.option(port, { nil: undefined }), fc.boolean(), (host, port, brackets) => {
        const family = isIP(host)
        const bracketed = family === 6 && (brackets || port !== undefined) ? `[${host}]` : host
        const text = port === undefined ? bracketed : `${bracketed}:${port}`
        expect(ServerAddress.parse(text)).toEqual({ host, family, port: port ?? 53, text })
      }),
      { seed: 1 }
    ))

  test.each([
    ...["", "localhost", "dns.example.com", "example.com:53", "1.2.3", "1.2.3.4.5", "256.1.1.1", ":53", "[]:53", "[192.0.2.1]:53"],
    ...["192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:dns", "192.0.2.1:53:53", " 192.0.2.1", "192.0.2.1,192.0.2.2"],
    ...["[::1", "::1]", "[::1]53", "[::1]:", "[::1]:0", "[[::1]]:53", ":::", "udp://192.0.2.1"]
  ])("cannot be %j", (text) => {
    expect(ServerAddress.parse(text)).toBeUndefined()
    expect(() => ServerAddress.parseOrThrow(text)).toThrow("is not the address of a name server")
  })

  test("is valid for all servers of the system", () => {
    expect(getServers().map(ServerAddress.parse)).not.toContain(undefined)
  })
})
