/** The pure parts of the web tool: the parser of events, the ticks of plots, texts, and the steps of a call. */
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { eventParser } from "../web/EventLines.ts"
import { filePath, isRunning, jobPath } from "../web/Follow.ts"
import type { Call } from "../web/Shapes.ts"
import { amount, away, browserName, credits, lasting, size } from "../web/Text.ts"
import { ticksTo } from "../web/Ticks.ts"
import { stepsOf } from "../web/Why.ts"

const line = fc.string().map((text) => text.replaceAll(/[\r\n]/gu, ""))

test("events are read whole, wherever the stream is cut", () =>
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          name: line.filter((name) => name !== ""),
          data: fc.array(line, { minLength: 1, maxLength: 3 }),
          end: fc.constantFrom("\n", "\r\n")
        })
      ),
      fc.array(fc.nat(200)),
      (events, cuts) => {
        const text = events
          .map(({ data, end, name }) => [": a comment", `event: ${name}`, ...data.map((part) => `data: ${part}`), "", ""].join(end))
          .join("")
        const parse = eventParser()
        const places = [0, ...cuts.filter((cut) => cut < text.length).toSorted((a, b) => a - b), text.length]
        const read = places.flatMap((place, index) => [...parse(text.slice(place, places[index + 1] ?? place))])
        expect(read).toEqual(events.map(({ data, name }) => ({ name, data: data.join("\n") })))
      }
    )
  ))

test("ticks begin at nothing, reach the largest value, and are evenly apart and few", () =>
  fc.assert(
    fc.property(fc.double({ min: 0.001, max: 1e12, noNaN: true }), (largest) => {
      const ticks = ticksTo(largest)
      expect(ticks[0]).toBe(0)
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(largest * (1 - 1e-6))
      expect(ticks.at(-2)).toBeLessThan(largest)
      expect(ticks.length).toBeGreaterThanOrEqual(2)
      expect(ticks.length).toBeLessThanOrEqual(6)
      const step = ticks[1] ?? 0
      for (const [index, tick] of ticks.entries()) expect(Math.abs(tick - index * step)).toBeLessThan(step * 1e-6)
    })
  ))

test("amounts, times and sizes read well", () => {
  expect([amount(1234.5), credits(1), credits(0.1), lasting(84.2), lasting(1_240), lasting(185_000)]).toEqual([
    "1,234.5",
    "1 credit",
    "0.1 credits",
    "84 ms",
    "1.2 s",
    "3 min 5 s"
  ])
  const now = Date.UTC(2026, 10, 21)
  expect([away("2026-11-22T01:00:00Z", now), away("2026-11-20T23:58:00Z", now), away("2026-11-21T00:00:05Z", now)]).toEqual([
    "in 1 day",
    "2 minutes ago",
    "in a moment"
  ])
  expect([size(812), size(14_200), size(3_400_000)]).toEqual(["812 bytes", "14.2 kB", "3.4 MB"])
})

describe("the steps of a call", () => {
  const call: Call = {
    reservation_id: "res_1",
    request_id: "1",
    operation: "email.validateBatch",
    outcome: "charged",
    reason: null,
    quantity: 2,
    price_version: 3,
    held: 1.8,
    charged: 1.2,
    refunded: 0,
    job_id: null,
    lots: [],
    started_at: "2026-11-21T12:00:00.000Z",
    ended_at: "2026-11-21T12:00:01.500Z",
    refunded_at: null
  }
  const told = (changed: Partial<Call>) => stepsOf({ ...call, ...changed }).map(({ name, text }) => `${name}: ${text}`)

  test("say what was held and charged, and what went back", () => {
    expect(told({})).toEqual([
      "Held: 1.8 credits for 2 units of email.validateBatch, by version 3 of the prices.",
      "Work: It took 1.5 s.",
      "Charged: 1.2 credits; the other 0.6 went back."
    ])
    expect(told({ outcome: "released", charged: 0, reason: "service_error" }).at(-1)).toBe(
      "Given back: All 1.8, because the service behind it failed. It cost nothing."
    )
    expect(told({ outcome: "refunded", refunded: 1.2, reason: "goodwill", refunded_at: "2026-11-22T00:00:00.000Z" }).at(-1)).toBe(
      "Refunded: 1.2 credits, because the host gave it back."
    )
  })

  test("of one that runs say no more than is known", () => {
    expect(told({ outcome: "running", charged: null, ended_at: null, job_id: "job_1" }).slice(1)).toEqual(["Job: It runs."])
  })

  test("of the trial name no credits, and say that the call is back when it failed", () => {
    const trial = { price_version: null, held: 0, charged: 0 }
    expect(told(trial)[0]).toBe("Held: A trial call has no price.")
    expect(told(trial).at(-1)).toBe("Charged: A trial call was used.")
    expect(told({ ...trial, outcome: "released", reason: "service_error" }).at(-1)).toBe(
      "Given back: The trial call, because the service behind it failed. It cost nothing."
    )
  })
})

describe("a job that a call made", () => {
  const base = {
    group: "",
    method: "GET",
    summary: "",
    description: "",
    price: undefined,
    isPublic: false,
    waits: false,
    parameters: [],
    links: []
  }
  const maker = {
    ...base,
    key: "make",
    path: "/api/v1/make",
    answers: ["application/json"],
    links: ["read", "download"].map((operation) => ({ operation, parameters: { job: "id" } }))
  }
  const operations = [
    maker,
    { ...base, key: "read", path: "/api/v1/make/{job}", answers: ["application/json"] },
    { ...base, key: "download", path: "/api/v1/make/{job}/artifact", answers: ["audio/mpeg"] }
  ]
  const contract = {
    operations,
    groups: [],
    find: () => undefined,
    byKey: (key: string) => operations.find((operation) => operation.key === key)
  }

  test("is read and downloaded by the links of the contract", () => {
    expect(isRunning({ id: "job 1", status: "processing" })).toBe(true)
    expect(jobPath(contract, maker, { id: "job 1", status: "processing" })).toBe("/api/v1/make/job%201")
    expect(filePath(contract, maker, { id: "job 1", status: "processing" })).toBeUndefined()
    expect(filePath(contract, maker, { id: "job 1", status: "succeeded" })).toBe("/api/v1/make/job%201/artifact")
    expect(filePath(contract, maker, { id: "job 1", status: "completed", download_url: "/api/v1/file" })).toBe("/api/v1/file")
    expect(jobPath(contract, maker, [])).toBeUndefined()
  })
})

describe("a browser", () => {
  test.each([
    ["Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36", "Chrome on Linux"],
    [
      "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
      "Edge on Windows"
    ],
    [
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
      "Safari on iOS"
    ],
    ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox on macOS"],
    ["curl/8.5.0", "curl/8.5.0"]
  ])("that calls itself %s is shown as people call it", (agent, name) => {
    expect(browserName(agent)).toBe(name)
  })
})
