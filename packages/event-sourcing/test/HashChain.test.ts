import fc from "fast-check"
import { expect, test } from "vitest"
import { position, type RecordedEvent } from "../src/EventStore.ts"
import * as HashChain from "../src/HashChain.ts"
import type { StreamName } from "../src/StreamName.ts"

const STREAM = "till-x"

const uuid = fc.uuid({ version: 7 })
const json = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 }).map((value) => JSON.stringify(value))
const metadata = fc
  .dictionary(
    fc.string().filter((key) => key !== "hash" && key !== "at"),
    fc.jsonValue(),
    { maxKeys: 3 }
  )
  .map((value) => JSON.stringify(value))
const at = fc.date({ min: new Date(0), max: new Date("9999-12-31T23:59:59.999Z"), noInvalidDate: true }).map((date) => date.toISOString())
const input = fc.record({ id: uuid, type: fc.stringMatching(/^[A-Z][A-Za-z0-9.]{0,20}$/), data: json, metadata, at })
type Input = typeof input extends fc.Arbitrary<infer A> ? A : never

const chain = (inputs: ReadonlyArray<Input>, stream: StreamName = STREAM): Array<RecordedEvent> => {
  let hash = HashChain.start(stream)
  return inputs.map(({ id, type, data, metadata, at }, revision) => {
    const sealed = HashChain.seal(hash, stream, revision, { id, type, data }, at, metadata)
    hash = HashChain.hashOf(sealed)
    return { ...sealed, stream, revision, position: position(`${revision}`) }
  })
}

/** The index of the first event that does not fit, or -1. Revisions count from 0 without gaps. */
const firstMisfit = (log: ReadonlyArray<RecordedEvent>): number => {
  let hash = HashChain.start(STREAM)
  return log.findIndex((event, place) => {
    if (event.stream !== STREAM || event.revision !== place || !HashChain.verify(hash, event)) return true
    hash = HashChain.hashOf(event)
    return false
  })
}

const logs = fc.array(input, { minLength: 1, maxLength: 6 }).map((inputs) => chain(inputs))
/** A log and a place in it. */
const placed = logs.chain((log) => fc.record({ log: fc.constant(log), place: fc.nat(log.length - 1) }))

test.each([
  ["2026-01-31T00:00:00.000Z", Date.UTC(2026, 0, 31)],
  ["+275760-09-13T00:00:00Z ", Number.NaN],
  ["2026-01-31T01:00:00+0100", Date.UTC(2026, 0, 31)],
  ["not a time by any means.", Number.NaN]
])("the time %s of an event is read as Date.parse reads it", (at, time) => {
  const event = { id: "0190163d-8694-739b-aea5-966c26f8ad91", type: "Emptied", data: "{}" }
  // Twice, for the time that was read last is kept
  for (let i = 0; i < 2; i++) {
    const sealed = HashChain.seal(HashChain.start(STREAM), STREAM, 0, event, at, "{}")
    expect([HashChain.timeOf(sealed), Date.parse(at)]).toEqual([time, time])
  }
})

test("sealed events are verified, and return their time and metadata", () => {
  fc.assert(
    fc.property(fc.array(input, { maxLength: 6 }), (inputs) => {
      const log = chain(inputs)
      expect(firstMisfit(log)).toBe(-1)
      log.forEach((event, i) => {
        const { at, metadata } = inputs[i]!
        expect(HashChain.isSealed(event)).toBe(true)
        expect(HashChain.atOf(event)).toBe(at)
        expect(HashChain.timeOf(event)).toBe(Date.parse(at))
        expect(HashChain.hashOf(event)).toMatch(/^[A-Za-z0-9_-]{43}$/)
        expect(JSON.parse(event.metadata)).toEqual({ ...JSON.parse(metadata), hash: HashChain.hashOf(event), at })
        expect(HashChain.metadataOf(event)).toEqual({ ...JSON.parse(metadata), at })
      })
    })
  )
})

test("the hash covers exactly the documented lines", () => {
  const [event] = chain([
    {
      id: "0190163d-8694-739b-aea5-966c26f8ad91",
      type: "Paid",
      data: `{"amount":1}`,
      metadata: `{"actor":"me"}`,
      at: "2026-01-31T00:00:00.000Z"
    }
  ])
  expect(event?.metadata).toBe(`{"hash":"${GOLDEN}","at":"2026-01-31T00:00:00.000Z","actor":"me"}`)
})
// printf 'till-x' | sha256 gives the first line; then the lines of HashChain.ts, hashed likewise, in base64url
const GOLDEN = "25E3HTsSuscp7A1rF4JB9iElJQXeGhxrCBHBLG12Moc"

test("a change in any field is detected at that event", () => {
  const edit = fc.record({ at: fc.nat(), to: fc.string({ minLength: 0, maxLength: 2 }) })
  fc.assert(
    fc.property(placed, fc.constantFrom("id", "type", "data", "metadata"), edit, ({ log, place }, field, { at, to }) => {
      const event = log[place]!
      const from = at % event[field].length
      const changed = event[field].slice(0, from) + to + event[field].slice(from + 1)
      fc.pre(changed !== event[field])
      expect(firstMisfit(log.with(place, { ...event, [field]: changed }))).toBe(place)
    }),
    { numRuns: 1_000 }
  )
})

test("text that moves from one field to the next is detected", () => {
  fc.assert(
    fc.property(placed, fc.constantFrom("id", "type", "data"), fc.nat(), ({ log, place }, field, length) => {
      const event = log[place]!
      const next = ({ id: "type", type: "data", data: "metadata" } as const)[field]
      const keep = event[field].length - 1 - (length % event[field].length)
      const moved = { ...event, [field]: event[field].slice(0, keep), [next]: event[field].slice(keep) + event[next] }
      expect(firstMisfit(log.with(place, moved))).toBe(place)
    })
  )
})

test("another stream or revision is detected", () => {
  fc.assert(
    fc.property(placed, fc.nat(10), ({ log, place }, revision) => {
      const event = log[place]!
      const previous = place === 0 ? HashChain.start(STREAM) : HashChain.hashOf(log[place - 1]!)
      expect(HashChain.verify(previous, event)).toBe(true)
      expect(HashChain.verified(previous, event)).toBe(HashChain.hashOf(event))
      expect(HashChain.verify(previous, { ...event, revision })).toBe(revision === place)
      expect(HashChain.verify(previous, { ...event, stream: "till-y" })).toBe(false)
    })
  )
})

test("a removed event is detected at the next one, even if later events are renumbered", () => {
  fc.assert(
    fc.property(placed, fc.boolean(), ({ log, place }, movesUp) => {
      fc.pre(place < log.length - 1)
      const rest = log.toSpliced(place, 1)
      expect(firstMisfit(movesUp ? rest.map((event, revision) => ({ ...event, revision })) : rest)).toBe(place)
    })
  )
})

test("reordered and inserted events are detected", () => {
  fc.assert(
    fc.property(placed, fc.nat(), input, ({ log, place }, nat, extra) => {
      const renumbered = (events: ReadonlyArray<RecordedEvent>) => events.map((event, revision) => ({ ...event, revision }))
      const other = nat % log.length
      if (other !== place) {
        const swapped = log.with(place, log[other]!).with(other, log[place]!)
        expect(firstMisfit(renumbered(swapped))).toBe(Math.min(place, other))
      }
      // An inserted event with a valid hash fits, but the event after it no longer does
      const previous = place === 0 ? HashChain.start(STREAM) : HashChain.hashOf(log[place - 1]!)
      const sealed = HashChain.seal(previous, STREAM, place, extra, extra.at, extra.metadata)
      expect(firstMisfit(renumbered(log.toSpliced(place, 0, { ...log[place]!, ...sealed })))).toBe(place + 1)
    })
  )
})

test("the first event of one stream does not fit another stream", () => {
  const [event] = chain([{ id: "i", type: "Paid", data: "{}", metadata: "{}", at: "2026-01-31T00:00:00.000Z" }], "till-y")
  expect(HashChain.verify(HashChain.start("till-y"), event!)).toBe(true)
  expect(HashChain.verify(HashChain.start("till-x"), { ...event!, stream: "till-x" })).toBe(false)
})

test("metadata of another form is not verified", () => {
  const [event] = chain([{ id: "i", type: "Paid", data: "{}", metadata: "{}", at: "2026-01-31T00:00:00.000Z" }])
  for (const metadata of [
    "",
    "{}",
    "null",
    event!.metadata.replace(`"hash"`, `"Hash"`),
    event!.metadata.slice(0, 60),
    ` ${event!.metadata}`
  ]) {
    expect(HashChain.verify(HashChain.start(STREAM), { ...event!, metadata })).toBe(false)
  }
})
