/** The source of keys, nonces and secrets: the system's generator, unless a simulation replaces it. */
import { randomBytes } from "node:crypto"
import { Context } from "effect"

/** Returns `size` unpredictable bytes. */
export type RandomBytes = (size: number) => Uint8Array

export const RandomBytes = Context.Reference<RandomBytes>("@millrace/core/vault/RandomBytes", {
  defaultValue: () => pooled
})

/** Bytes that are taken from the system at once: a call for each nonce would cost several times as much. */
const POOL = 4_096

let pool = Buffer.alloc(0)
let used = 0

/** Each byte is given out once, and does not stay in the pool. */
const pooled: RandomBytes = (size) => {
  if (size > POOL / 16) return randomBytes(size)
  if (used + size > pool.length) {
    pool = randomBytes(POOL)
    used = 0
  }
  const taken = Buffer.from(pool.subarray(used, used + size))
  pool.fill(0, used, used + size)
  used += size
  return taken
}
