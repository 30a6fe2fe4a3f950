/** Copies of files for backups and restores. */
import { createHash } from "node:crypto"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import * as DiskFiles from "../src/DiskFiles.ts"

const root = mkdtempSync(join(tmpdir(), "millrace-disk-files-"))
afterAll(() => rmSync(root, { recursive: true }))

const folder = () => mkdtempSync(join(root, "case-"))
const copy = (from: string, to: string) => Effect.runPromise(DiskFiles.copy(from, to))

describe("a copy", () => {
  it("has the bytes of the file, and tells their size and hash", async () => {
    const at = folder()
    const bytes = Buffer.alloc(3_000_000, "grain ")
    writeFileSync(join(at, "from"), bytes)
    const sha256 = createHash("sha256").update(bytes).digest("hex")
    expect(await copy(join(at, "from"), join(at, "to"))).toEqual({ bytes: bytes.length, sha256 })
    expect(readFileSync(join(at, "to")).equals(bytes)).toBe(true)
  })

  it("of a file that is not there makes no file, and needs no folder to make it in", async () => {
    const at = folder()
    await expect(copy(join(at, "missing"), join(at, "to"))).rejects.toThrow(/missing cannot be copied: ENOENT.*missing/su)
    await expect(copy(join(at, "missing"), join(at, "removed", "to"))).rejects.toThrow(/ENOENT.*missing/su)
    // A file that is opened too early appears, or fails to, after the failure was told.
    await sleep(50)
    expect(readdirSync(at)).toEqual([])
  })

  it("replaces no file, and fails where its folder is not there", async () => {
    const at = folder()
    mkdirSync(join(at, "in"))
    writeFileSync(join(at, "from"), "new")
    writeFileSync(join(at, "in", "to"), "old")
    await expect(copy(join(at, "from"), join(at, "in", "to"))).rejects.toThrow(/EEXIST/u)
    expect(readFileSync(join(at, "in", "to"), "utf8")).toBe("old")
    await expect(copy(join(at, "from"), join(at, "out", "to"))).rejects.toThrow(/ENOENT/u)
  })
})
