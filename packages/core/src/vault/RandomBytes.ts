/** The source of keys, nonces and secrets: the system's generator, unless a simulation replaces it. */
import { randomBytes } from "node:crypto"
import { Context } from "effect"

/** Returns `size` unpredictable bytes. */
export type RandomBytes = (size: number) => Uint8Array

export const RandomBytes = Context.Reference<RandomBytes>("@millrace/core/vault/RandomBytes", {
  defaultValue: () => (size) => randomBytes(size)
})
