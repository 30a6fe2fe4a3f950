import { expect, test } from "vitest"
import { format, parse } from "../../src/leading/Address.ts"

test.each(["127.0.0.1:7400", "10.0.0.5:0", "172.31.255.255:1", "192.168.1.2:65535", "100.64.0.1:7400", "[::1]:7400", "[fd00::5]:7400"])(
  "%s is an address of a cluster",
  (text) => {
    const address = parse(text)
    expect(address && format(address)).toBe(text)
  }
)

test.each([
  "0.0.0.0:7400",
  "8.8.8.8:7400",
  "172.32.0.1:7400",
  "[::]:7400",
  "[2001:db8::1]:7400",
  "[127.0.0.1]:7400",
  "10.0.0.5",
  "10.0.0.5:70000",
  ":7400",
  "localhost:7400",
  "fd00::5:7400",
  ""
])("%s is none", (text) => {
  expect(parse(text)).toBeUndefined()
})
