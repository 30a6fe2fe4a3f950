/** Which videos of a channel have more views than others that are as old. */

/** A video to judge. */
export interface Watched {
  readonly id: string
  readonly views: number
  /** Milliseconds since it was published. */
  readonly age: number
}

export interface Judged<V extends Watched> {
  readonly video: V
  readonly expected: number
  readonly multiplier: number
}

/** A younger video is not judged, nor are others judged by it: its views rise too fast. Milliseconds. */
export const LEAST_AGE = 48 * 3_600_000

/** The most videos that one is compared with, and the least. */
export const PEERS = 10
export const LEAST_PEERS = 4

/**
 * The multiplier of each video that can be judged, in the order given:
 *
 *     multiplier(v) = views(v) / max(1, median of views(p) over the peers p of v)
 *
 * The peers of a video are the ten other videos whose age is nearest to its own, by |ln(age(p) / age(v))|; equal distances are decided by
 * the id. So the median is that of the same age, without an assumption of how views grow. Nothing is judged with fewer than four peers.
 */
export const judge = <V extends Watched>(videos: ReadonlyArray<V>): ReadonlyArray<Judged<V>> => {
  const old = videos.filter(({ age }) => age >= LEAST_AGE)
  if (old.length <= LEAST_PEERS) return []
  return old.map((video) => {
    const expected = median(peersOf(video, old).map(({ views }) => views))
    return { video, expected, multiplier: video.views / Math.max(1, expected) }
  })
}

const peersOf = <V extends Watched>(video: V, others: ReadonlyArray<V>): ReadonlyArray<V> =>
  others
    .filter((other) => other !== video)
    .map((other) => ({ other, distance: Math.abs(Math.log(other.age / video.age)) }))
    .sort((a, b) => a.distance - b.distance || (a.other.id < b.other.id ? -1 : 1))
    .slice(0, PEERS)
    .map(({ other }) => other)

/** Of at least one number. */
const median = (numbers: ReadonlyArray<number>): number => {
  const sorted = numbers.toSorted((a, b) => a - b)
  const [low = 0, high = 0] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]]
  return (low + high) / 2
}
