/**
 * A pseudorandom number generator: the same seed draws the same numbers on every machine and release. xoshiro128** (Blackman and Vigna,
 * https://prng.di.unimi.it/xoshiro128starstar.c), its state filled by SplitMix32. Not for secrets.
 */
import { type EventIds, uuidv7 } from "@millrace/event-sourcing"

export interface SeededRandom {
  readonly seed: number
  /** 0 or more, less than 1. */
  readonly next: () => number
  /** A whole number from 0, less than `bound`. */
  readonly below: (bound: number) => number
  /** True with this probability. Always draws once, so that a changed rate shifts nothing else. */
  readonly chance: (probability: number) => boolean
  readonly pick: <A>(from: readonly [A, ...ReadonlyArray<A>]) => A
  /** A copy in random order. */
  readonly shuffle: <A>(all: ReadonlyArray<A>) => Array<A>
  readonly bytes: (length: number) => Uint8Array
  /** An independent generator for one actor. It depends on the seed and the name alone, not on what others draw. */
  readonly fork: (name: string) => SeededRandom
  /** Event ids that repeat with the seed. */
  readonly eventIds: () => EventIds
}

/** Makes a generator from any integer; seeds that differ by a multiple of 2^32 are equal. */
export const make = (seed: number): SeededRandom => {
  let state = seed | 0
  const splitmix = () => {
    state = (state + 0x9e3779b9) | 0
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97)
    return z ^ (z >>> 15)
  }
  let a = splitmix()
  let b = splitmix()
  let c = splitmix()
  let d = splitmix()
  const rotate = (x: number, by: number) => (x << by) | (x >>> (32 - by))
  const uint32 = () => {
    const drawn = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0
    const t = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = rotate(d, 11)
    return drawn
  }

  const next = () => uint32() / 2 ** 32
  const below = (bound: number) => Math.floor(next() * bound)
  const bytes = (length: number) => Uint8Array.from({ length }, () => uint32() >>> 24)
  return {
    seed,
    next,
    below,
    chance: (probability) => next() < probability,
    pick: (from) => from[below(from.length)] ?? from[0],
    shuffle: (all) => {
      const left = [...all]
      return all.flatMap(() => left.splice(below(left.length), 1))
    },
    bytes,
    fork: (name) => make(fnv1a(name, seed)),
    eventIds: () => uuidv7(bytes(9))
  }
}

/** FNV-1a over UTF-16 code units, with an initial value that depends on the seed. */
const fnv1a = (text: string, seed: number): number => {
  let hash = 0x811c9dc5 ^ Math.imul(seed, 0x9e3779b1)
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}
