/**
 * Benchmarks, never tests: `npm run bench [-- NAME ...] [--rounds N] [--seconds N] [--json]`.
 * Figures are ratios within one run; absolute ones say more about the machine than about the code.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { parseArgs } from "node:util"

const benchmarks = {
  charges: () => import("./charges.ts"),
  http: () => import("./http.ts"),
  replay: () => import("./replay.ts"),
  memory: () => import("./memory.ts"),
  startup: () => import("./startup.ts")
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "2" }
  }
})
const unknown = positionals.filter((name) => !(name in benchmarks))
if (unknown.length > 0) {
  console.error(`No benchmark ${unknown.join(", ")}: there are ${Object.keys(benchmarks).join(", ")}`)
  process.exit(2)
}

const options = { rounds: Number(values.rounds), millis: Number(values.seconds) * 1000 }
const results: Record<string, unknown> = {}
for (const [name, load] of Object.entries(benchmarks)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue
  const { run } = await load()
  const rows = await run(options)
  results[name] = rows
  if (!values.json) {
    console.log(`\n${name}`)
    console.table(rows)
  }
}
if (values.json) console.log(JSON.stringify({ node: process.version, ...options, results }))
