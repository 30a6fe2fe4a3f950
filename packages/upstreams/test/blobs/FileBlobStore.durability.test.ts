/** The order in which a blob reaches the disk: nothing is acknowledged before it is durable. A power loss itself is not tested. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { BlobStore, Vault } from "@millrace/core"
import { MemoryStateStore } from "@millrace/event-sourcing"
import { FileBlobStore } from "@millrace/upstreams"
import { Effect, Layer } from "effect"
import { expect, test, vi } from "vitest"
import { open as openVault } from "../../../core/test/vault/Vaults.ts"

const calls = vi.hoisted((): Array<string> => [])

vi.mock(import("node:fs/promises"), async (original) => {
  const fs = await original()
  return {
    ...fs,
    open: async (...args: Parameters<typeof fs.open>) => {
      const name = basename(String(args[0]))
      const file = await fs.open(...args)
      const { sync, writeFile } = file
      file.sync = () => sync.call(file).then(() => void calls.push(`sync ${name}`))
      file.writeFile = (...data) => writeFile.apply(file, data).then(() => void calls.push(`write ${name}`))
      return file
    },
    rename: async (from, to) => {
      await fs.rename(from, to)
      calls.push(`rename ${basename(String(from))} ${basename(String(to))}`)
    },
    rm: async (...args: Parameters<typeof fs.rm>) => {
      await fs.rm(...args)
      calls.push(`rm ${basename(String(args[0]))}`)
    }
  }
})

/** Runs with a store in that directory. */
const inDirectory = <A, E>(path: string, body: Effect.Effect<A, E, BlobStore.BlobStore>) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const vault = yield* Effect.flatMap(MemoryStateStore.make, (store) => openVault(store))
      return yield* Effect.provide(body, Layer.provide(FileBlobStore.layer(path), Layer.succeed(Vault.Vault, vault)))
    })
  )

test("a new directory is synced in its parent, and the parent in its own", async () => {
  const path = await mkdtemp(join(tmpdir(), "millrace-blobs-"))
  try {
    calls.length = 0
    await inDirectory(
      join(path, "one", "two"),
      Effect.sync(() => expect(calls).toEqual(["sync one", `sync ${basename(path)}`]))
    )
    calls.length = 0
    await inDirectory(
      join(path, "one", "two"),
      Effect.sync(() => expect(calls).toEqual([]))
    )
  } finally {
    await rm(path, { recursive: true, force: true })
  }
})

test("a blob is synced before it gets its name, and the directory before the put or the removal returns", async () => {
  const path = await mkdtemp(join(tmpdir(), "millrace-blobs-"))
  const directory = basename(path)
  try {
    await inDirectory(
      path,
      Effect.gen(function* () {
        const blobs = yield* BlobStore.BlobStore
        calls.length = 0
        const { id } = yield* blobs.put("account:acc_1", Buffer.from("x"))
        const temporary = calls.find((call) => call.startsWith("write "))?.slice("write ".length)
        const acknowledged = calls.filter((call) => !call.startsWith("write ") && !call.startsWith("rm "))
        expect(acknowledged).toEqual([`sync ${temporary}`, `rename ${temporary} ${id}`, `sync ${directory}`])
        expect(calls.findLastIndex((call) => call.startsWith("write "))).toBeLessThan(calls.indexOf(`sync ${temporary}`))
        calls.length = 0
        yield* blobs.remove(id)
        expect(calls).toEqual([`rm ${id}`, `sync ${directory}`])
      })
    )
  } finally {
    await rm(path, { recursive: true, force: true })
  }
})
