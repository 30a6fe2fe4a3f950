#!/usr/bin/env node
// The entry of the command line. Plain JavaScript that any Node parses, so that an old one is refused in words, before a native
// module loads and fails in its own.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(`millrace needs Node.js 22.19 or newer; this is ${process.version}.`)
  process.exit(1)
}

// Bursts of a thousand calls lose 10 to 45 % of their speed to V8's allocation-site pretenuring: see docs/performance.md
const { setFlagsFromString } = await import("node:v8")
setFlagsFromString("--no-allocation-site-pretenuring")

// Half of a short command is compiling. The cache is the user's own: whoever writes it chooses the code that runs, so the shared folder for
// temporary files, which is Node's default, is no place for it. Without a home that can be written, nothing is kept.
const { enableCompileCache } = await import("node:module")
const { homedir } = await import("node:os")
const { join } = await import("node:path")
if (!process.env.NODE_COMPILE_CACHE) enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "millrace"))

const { existsSync } = await import("node:fs")
if (existsSync(new URL("../src/main.ts", import.meta.url))) {
  // A checkout: Node runs the sources themselves, ours and those of the packages beside us
  const { registerHooks } = await import("node:module")
  registerHooks({
    resolve: (specifier, context, next) => next(specifier, { ...context, conditions: [...context.conditions, "@millrace/source"] })
  })
  await import("../src/main.ts")
} else {
  await import("../dist/main.js")
}
