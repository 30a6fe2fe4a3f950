import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { judge, LEAST_AGE, LEAST_PEERS, type Watched } from "../../../src/operations/video/Outliers.ts"

const DAY = 86_400_000

/** Videos of a channel, some of them too young. Ids are unique. */
const videos = fc
  .array(fc.record({ views: fc.integer({ min: 2, max: 1_000_000 }), age: fc.integer({ min: 0, max: 3_000 * DAY }) }), { maxLength: 40 })
  .map((all) => all.map((video, index): Watched => ({ ...video, id: `v${index}` })))

const multipliers = (all: ReadonlyArray<Watched>) => new Map(judge(all).map(({ multiplier, video }) => [video.id, multiplier]))

const check = <T>(property: fc.IProperty<T>) => fc.assert(property)

describe("the multiplier of a video", () => {
  test("is 1 for all where all have the same views, whatever their age", () =>
    check(
      fc.property(videos, (all) => {
        for (const { multiplier } of judge(all.map((video) => ({ ...video, views: 700 })))) expect(multiplier).toBe(1)
      })
    ))

  test("does not depend on how large the channel is", () =>
    check(
      fc.property(videos, fc.integer({ min: 2, max: 1_000 }), (all, factor) => {
        const larger = multipliers(all.map((video) => ({ ...video, views: video.views * factor })))
        for (const [id, multiplier] of multipliers(all)) expect(larger.get(id)).toBeCloseTo(multiplier, 9)
      })
    ))

  test("does not depend on the order of the videos", () =>
    check(
      fc.property(videos, (all) => {
        expect(multipliers(all.toReversed())).toEqual(multipliers(all))
      })
    ))

  test("grows with the views of the video, and never with those of another", () =>
    check(
      fc.property(videos, fc.nat(), fc.integer({ min: 1, max: 1_000_000 }), (all, which, more) => {
        const chosen = all[which % Math.max(1, all.length)]
        const before = multipliers(all)
        const after = multipliers(all.map((video) => (video === chosen ? { ...video, views: video.views + more } : video)))
        for (const [id, multiplier] of after) {
          if (id === chosen?.id) expect(multiplier).toBeGreaterThan(before.get(id) ?? 0)
          else expect(multiplier).toBeLessThanOrEqual(before.get(id) ?? 0)
        }
      })
    ))

  test("is of no video that is too young, and none says anything of others", () =>
    check(
      fc.property(videos, fc.integer({ min: 0, max: 1_000_000 }), (all, views) => {
        const isYoung = ({ age }: Watched) => age < LEAST_AGE
        const judged = multipliers(all)
        for (const video of all.filter(isYoung)) expect(judged.has(video.id)).toBe(false)
        expect(multipliers(all.map((video) => (isYoung(video) ? { ...video, views } : video)))).toEqual(judged)
        const old = all.filter((video) => !isYoung(video))
        expect(judged.size).toBe(old.length > LEAST_PEERS ? old.length : 0)
      })
    ))

  test("compares old videos with old ones", () => {
    // Old videos had more time: ten thousand views are many for a week, and few for ten years
    const young = Array.from({ length: 11 }, (_, index) => ({ id: `young${index}`, views: 1_000, age: (5 + index / 10) * DAY }))
    const old = Array.from({ length: 11 }, (_, index) => ({ id: `old${index}`, views: 100_000, age: (3_000 + index) * DAY }))
    const judged = multipliers([...young, ...old, { id: "a", views: 10_000, age: 6 * DAY }, { id: "b", views: 10_000, age: 3_005 * DAY }])
    expect([judged.get("a"), judged.get("b")]).toEqual([10, 0.1])
  })
})
