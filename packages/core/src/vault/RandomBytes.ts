/** Where keys, nonces and secrets come from: the system's own generator, unless a simulation brings another. */
import { randomBytes } from "node:crypto"
import { Context } from "effect"

/** That many bytes that nobody can foretell. */
export type RandomBytes = (size: number) => Uint8Array

export const RandomBytes = Context.Reference<RandomBytes>("@millrace/core/vault/RandomBytes", {
  defaultValue: () => (size) => randomBytes(size)
})
