/** What a node reaches where nothing is allowed especially, as it is served. */
import { networkInterfaces } from "node:os"
import { describe, expect, test } from "vitest"
import { connector, NotConnected } from "../../src/proxy/Destinations.ts"

const resolved = (): never => {
  throw new Error("It was resolved")
}

/** The reason why there is no connection. Without `addresses`, the host must not be resolved. */
const unreached = (host: string, port: number, addresses?: ReadonlyArray<string>): Promise<string> =>
  connector({
    connectTimeout: 50,
    resolve: async () => (addresses ?? resolved()).map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))
  })(host, port).then(
    (socket) => {
      socket.destroy()
      return "connected"
    },
    (error: unknown) => (error instanceof NotConnected ? error.reason : String(error))
  )

describe("a node without exceptions", () => {
  test("refuses literals that are not public, in every notation", async () => {
    const v4 = ["127.0.0.1", "127.1", "0x7f000001", "017700000001", "2130706433", "10.1.2.3", "172.16.0.1", "192.168.0.1", "100.64.0.1"]
    const special = ["169.254.169.254", "168.63.129.16", "0.0.0.0", "224.0.0.1", "255.255.255.255", "192.0.2.1"]
    const v6 = ["::1", "::", "::ffff:10.0.0.1", "::ffff:a00:1", "64:ff9b::a00:1", "2002:a00:1::", "fe80::1", "fc00::1", "ff02::1"]
    for (const host of [...v4, ...special, ...v6, ...v6.map((address) => `[${address}]`)])
      expect([host, await unreached(host, 443)]).toEqual([host, "forbidden"])
  })

  test("refuses a name of which one address is not public, also where others are", async () => {
    expect(await unreached("shop.test", 443, ["10.0.0.1"])).toBe("forbidden")
    expect(await unreached("shop.test", 443, ["8.8.8.8", "127.0.0.1"])).toBe("forbidden")
    expect(await unreached("localhost", 443, ["::1"])).toBe("forbidden")
    expect(await unreached("shop.test", 443, [])).toBe("forbidden")
  })

  test("refuses what is no host, the ports of mail and the port 0, before anything is resolved", async () => {
    for (const host of ["", "a b", "user@shop.test", "shop.test/x", "shop.test:80", "a\0b", "x".repeat(300), "shop.test#", "%31.1.1.1"])
      expect([host, await unreached(host, 443)]).toEqual([host, "forbidden"])
    for (const port of [0, 25, 465, 587, 65_536]) expect([port, await unreached("shop.test", port)]).toEqual([port, "forbidden"])
  })

  test("refuses the addresses of its machine", async () => {
    for (const { address } of Object.values(networkInterfaces()).flatMap((own) => own ?? []))
      expect([address, await unreached("shop.test", 443, [address])]).toEqual([address, "forbidden"])
  })
})
