/** Where a link leads: a request chooses between names of this machine, and nothing else. */

import { HttpServerRequest } from "effect/http"
import fc from "fast-check"
import { expect, test } from "vitest"
import * as Loopback from "../src/sessions/Loopback.ts"

const asked = (host: string) => {
  const request = HttpServerRequest.fromWeb(new Request("http://any.test/"))
  return request.modify({ headers: Object.assign(Object.create(Object.getPrototypeOf(request.headers)), request.headers, { host }) })
}

const baseOf = (publicUrl: string, host: string): string => Loopback.baseOf(new URL(publicUrl), asked(host)).href

test("a server of this machine is at the name that was asked, with its port and its path", () => {
  const names = ["localhost", "127.0.0.1", "[::1]"]
  for (const own of names)
    for (const other of names) expect(baseOf(`http://${own}:8787/app`, `${other}:8787`)).toBe(`http://${other}:8787/app`)
})

test("no other name, port or text in a request leads a link elsewhere", () => {
  const hosts = fc.oneof(
    fc.domain(),
    fc.string(),
    fc.constantFrom(
      "localhost:1",
      "localhost",
      "localhost:8787@evil.test",
      "localhost.evil.test:8787",
      "evil.test:8787",
      "127.0.0.2:8787",
      "",
      "/"
    )
  )
  fc.assert(
    fc.property(hosts, fc.constantFrom("http://127.0.0.1:8787/", "https://api.example.com/"), (host, publicUrl) => {
      const base = new URL(baseOf(publicUrl, host))
      expect([base.port, base.protocol, base.pathname]).toEqual([new URL(publicUrl).port, new URL(publicUrl).protocol, "/"])
      expect(publicUrl.startsWith("https") ? ["api.example.com"] : ["localhost", "127.0.0.1", "[::1]"]).toContain(base.hostname)
    })
  )
  expect(baseOf("https://api.example.com", "localhost")).toBe("https://api.example.com/")
})
