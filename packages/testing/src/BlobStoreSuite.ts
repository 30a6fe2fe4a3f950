/**
 * The contract of blob stores, as tests that each implementation runs unchanged. So no test assumes an empty store, and each leaves alone
 * what others keep in it.
 */
import { BlobStore, MasterKey, Vault } from "@millrace/core"
import { MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import { content } from "./suites/BlobStoreContent.ts"
import { lifetime } from "./suites/BlobStoreLifetime.ts"
import { type Large, memory } from "./suites/BlobStoreMemory.ts"
import { declare, type Runner } from "./suites/Contract.ts"

const MASTER = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/**
 * Declares the tests of one store. `makeLayer` is built anew for each. `large` is the size of a large blob and how much of it may be in
 * memory; leave it out for a store that is itself in memory.
 */
export const blobStoreSuite = (
  name: string,
  makeLayer: () => Layer.Layer<BlobStore.BlobStore, unknown, Vault.Vault>,
  runner: Runner,
  large?: Large
): void => {
  const vaults = Vault.Vault.layer.pipe(Layer.provide(MasterKey.layer(MASTER)), Layer.provide(MemoryStateStore.layer))
  const contract = { ...content, ...lifetime, ...(large === undefined ? {} : memory(large)) }
  declare(runner, `${name}: a store of blobs`, contract, Effect.all([BlobStore.BlobStore, Vault.Vault]), () =>
    Layer.provideMerge(makeLayer(), Layer.fresh(vaults))
  )
}
