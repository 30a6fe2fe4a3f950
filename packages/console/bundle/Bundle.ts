/** Builds the web tool from its sources: one script, one style sheet and one icon with their hashes in their names, and the page. */
import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { rolldown } from "rolldown"

const web = fileURLToPath(new URL("../web/", import.meta.url))

interface Built {
  readonly path: string
  readonly bytes: Uint8Array
}

/** The files by their paths below the page. The page is `index.html`, in which `{{base}}` stands for the path where it is mounted. */
export const bundle = async (): Promise<ReadonlyArray<Built>> => {
  const [script, style, icon, page] = await Promise.all([
    scriptOf(),
    readFile(`${web}style.css`, "utf8").then(withoutComments),
    readFile(`${web}icon.svg`, "utf8"),
    readFile(`${web}index.html`, "utf8")
  ])
  const named = { script: hashed("main", "js", script), style: hashed("style", "css", style), icon: hashed("icon", "svg", icon) }
  const html = page.replaceAll(/\{\{(script|style|icon)\}\}/gu, (_, name: keyof typeof named) => `{{base}}/${named[name].path}`)
  return [...Object.values(named), { path: "index.html", bytes: Buffer.from(html) }]
}

const hashed = (name: string, end: string, text: string): Built => ({
  path: `assets/${name}-${createHash("sha256").update(text).digest("hex").slice(0, 10)}.${end}`,
  bytes: Buffer.from(text)
})

const scriptOf = async (): Promise<string> => {
  const bundled = await rolldown({
    input: `${web}main.tsx`,
    platform: "browser",
    tsconfig: `${web}tsconfig.json`,
    transform: { target: "es2022" },
    onLog: (level, log) => {
      if (level === "warn") throw new Error(log.message)
    }
  })
  try {
    const { output } = await bundled.generate({ format: "esm", minify: true, codeSplitting: false })
    return output[0].code
  } finally {
    await bundled.close()
  }
}

const withoutComments = (css: string): string =>
  css
    .replaceAll(/\/\*[\s\S]*?\*\//gu, "")
    .replaceAll(/\s*\n\s*/gu, "\n")
    .trim()
