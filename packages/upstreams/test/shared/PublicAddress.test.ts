import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { isPublic } from "../../src/shared/PublicAddress.ts"

const check = (property: fc.IProperty<unknown>) => fc.assert(property, { seed: 1, numRuns: 500 })

const dotted = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".")

/** IPv4 ranges that are nobody's or somebody's own, from the registries of IANA, as first address and length of the prefix. */
const SPECIAL: ReadonlyArray<readonly [string, number]> = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4]
]

const numberOf = (address: string): number => address.split(".").reduce((value, part) => value * 256 + Number(part), 0)

const isSpecial = (value: number): boolean =>
  SPECIAL.some(([first, length]) => Math.floor(value / 2 ** (32 - length)) === Math.floor(numberOf(first) / 2 ** (32 - length)))

const anyV4 = fc.nat(0xffffffff)

const specialV4 = fc
  .constantFrom(...SPECIAL)
  .chain(([first, length]) => fc.nat(2 ** (32 - length) - 1).map((offset) => numberOf(first) + offset))

const hex = (value: number): string => `${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`

const group = fc.nat(0xffff).map((value) => value.toString(16))

const groups = (count: number) => fc.array(group, { minLength: count, maxLength: count }).map((parts) => parts.join(":"))

describe("an IPv4 address", () => {
  test("of a special range is not public", () =>
    check(
      fc.property(specialV4, (value) => {
        expect([dotted(value), isPublic(dotted(value))]).toEqual([dotted(value), false])
      })
    ))

  test("is public if the registries say so", () =>
    check(
      fc.property(anyV4, (value) => {
        if (isPublic(dotted(value))) expect([dotted(value), isSpecial(value)]).toEqual([dotted(value), false])
      })
    ))

  test("within IPv6 is not public", () =>
    check(
      fc.property(anyV4, (value) => {
        for (const address of [
          `::${dotted(value)}`,
          `::ffff:${dotted(value)}`,
          `::ffff:${hex(value)}`,
          `0:0:0:0:0:ffff:${hex(value)}`,
          `::ffff:0:${dotted(value)}`,
          `64:ff9b::${dotted(value)}`,
          `64:ff9b::${hex(value)}`,
          `64:ff9b:1::${hex(value)}`,
          `2002:${hex(value)}::1`,
          `2001:0:${hex(value)}::1`
        ])
          expect([address, isPublic(address)]).toEqual([address, false])
      })
    ))

  test.each(["1.1.1.1", "8.8.8.8", "93.184.215.14", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "223.255.255.255"])(
    "such as %s is public",
    (address) => expect(isPublic(address)).toBe(true)
  )
})

describe("an IPv6 address", () => {
  test("outside of global unicast is not public", () =>
    check(
      fc.property(fc.nat(0xffff), groups(7), (first, rest) => {
        const address = `${first.toString(16)}:${rest}`
        if (first < 0x2000 || first > 0x3fff) expect([address, isPublic(address)]).toEqual([address, false])
      })
    ))

  test("of a site, a link or a group is not public", () =>
    check(
      fc.property(
        fc.constantFrom("fc", "fd", "fe8", "fe9", "fea", "feb", "fec", "ff0", "ff7"),
        fc.nat(0xff),
        groups(7),
        (prefix, tail, rest) => {
          const address = `${`${prefix}${tail.toString(16)}00`.slice(0, 4)}:${rest}`
          expect([address, isPublic(address)]).toEqual([address, false])
        }
      )
    ))

  test("with a zone is not public", () =>
    check(
      fc.property(groups(7), fc.constantFrom("0", "1", "eth0", "lo"), (rest, zone) => {
        expect(isPublic(`2606:${rest}%${zone}`)).toBe(false)
      })
    ))

  test.each(["::", "::1", "fd00:ec2::254", "2001:db8::1", "3fff::1", "100::1", "2001:10::1", "2001:20::1"])(
    "such as %s is not public",
    (address) => expect(isPublic(address)).toBe(false)
  )

  test.each(["2606:4700:4700::1111", "2001:4860:4860::8888", "2A00:1450:4001:800::200E"])("such as %s is public", (address) =>
    expect(isPublic(address)).toBe(true)
  )
})

test.each(["168.63.129.16", "169.254.169.254", "100.100.100.200", "192.0.0.192", "169.254.170.2"])(
  "the metadata service at %s is not public",
  (address) => expect(isPublic(address)).toBe(false)
)

test("a malformed or unusual address is not public", () =>
  check(
    fc.property(
      fc.oneof(
        fc.string(),
        anyV4.map(String),
        anyV4.map((value) => `0x${value.toString(16)}`),
        anyV4.map((value) => `0${value.toString(8)}`),
        anyV4.map((value) => dotted(value).replace(/\.(\d+)$/u, "")),
        anyV4.map((value) => dotted(value).replace(/^(\d+)/u, (part) => `0x${Number(part).toString(16)}`)),
        fc.constantFrom("localhost", "example.com", "[::1]", "", "1.1.1.1.", " 1.1.1.1", "1.1.1.1/32")
      ),
      (text) => {
        expect([text, isPublic(text)]).toEqual([text, false])
      }
    )
  ))
