/** The files of the web tool: those of the package, or in a checkout those that are built from the sources now, which takes half a second. */
import { existsSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import type { WebFiles } from "@millrace/http"

/** A file before it is compressed. */
export interface PlainFile {
  readonly path: string
  readonly bytes: Uint8Array
}

const here = fileURLToPath(new URL(".", import.meta.url))
/** Only a checkout has it. */
const BUNDLE = join(here, "../bundle/Bundle.ts")
const BUILT = join(here, "web")

/** The media types of the files by their ends. */
const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml"
}

/** The page is `index.html` in the package, and is served without a name. */
export const PAGE = "index.html"

/** The files, compressed. Rejects if the package was not built, or the sources cannot be. */
export const load = async (): Promise<ReadonlyArray<WebFiles.WebFile>> => Promise.all((await plain()).map(compressed))

const plain = async (): Promise<ReadonlyArray<PlainFile>> => {
  if (existsSync(BUNDLE)) {
    const { bundle } = (await import(BUNDLE)) as { readonly bundle: () => Promise<ReadonlyArray<PlainFile>> }
    return bundle()
  }
  const names = await readdir(BUILT, { recursive: true, withFileTypes: true })
  return Promise.all(
    names
      .filter((entry) => entry.isFile())
      .map(async ({ name, parentPath }) => {
        const file = join(parentPath, name)
        return { path: file.slice(BUILT.length + 1).replaceAll("\\", "/"), bytes: await readFile(file) }
      })
  )
}

const zipped = promisify(gzip)
const brotlied = promisify(brotliCompress)

const compressed = async ({ bytes, path }: PlainFile): Promise<WebFiles.WebFile> => ({
  path: path === PAGE ? "" : path,
  type: TYPES[path.split(".").at(-1) ?? ""] ?? "application/octet-stream",
  bytes,
  gzip: await zipped(bytes, { level: 9 }),
  brotli: await brotlied(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } })
})
