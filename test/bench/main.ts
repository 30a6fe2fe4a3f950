/**
 * Benchmarks, never tests: `npm run bench [-- NAME ...] [--rounds N] [--seconds N] [--json]`.
 * Figures are ratios within one run; absolute ones say more about the machine than about the code.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { parseArgs } from "node:util"

const benchmarks = {
  charges: () => import("./charges.ts"),
  stores: () => import("./stores.ts"),
  jobs: () => import("./jobs.ts"),
  http: () => import("./http.ts"),
  garbage: () => import("./garbage.ts"),
  mail: () => import("./mail.ts"),
  prices: () => import("./prices.ts"),
  proxy: () => import("./proxy.ts"),
  replay: () => import("./replay.ts"),
  memory: () => import("./memory.ts"),
  overview: () => import("./overview.ts"),
  waits: () => import("./waits.ts"),
  coupons: () => import("./coupons.ts"),
  startup: () => import("./startup.ts")
}

const USAGE = `npm run bench [-- NAME ...] [--rounds N] [--seconds N] [--json]
NAME: ${Object.keys(benchmarks).join(", ")}; all of them by default`

const refuse = (reason: string): never => {
  console.error(`${reason}\n${USAGE}`)
  process.exit(2)
}

const parsed = () => {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        help: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        rounds: { type: "string", default: "3" },
        seconds: { type: "string", default: "2" }
      }
    })
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

const { values, positionals } = parsed()
if (values.help) {
  console.log(USAGE)
  process.exit()
}
const unknown = positionals.filter((name) => !(name in benchmarks))
if (unknown.length > 0) refuse(`There is no benchmark ${unknown.join(", ")}`)

const options = { rounds: Number(values.rounds), millis: Number(values.seconds) * 1000 }
if (!Number.isInteger(options.rounds) || options.rounds < 1) refuse(`--rounds ${values.rounds} is no number of rounds`)
if (!(options.millis > 0)) refuse(`--seconds ${values.seconds} is no time`)
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
