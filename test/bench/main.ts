/**
 * Benchmarks, never tests: `npm run bench [-- NAME ...] [--rounds N] [--seconds N] [--json | --check | --keep | --plot]`.
 * Figures are ratios within one run; absolute ones say more about the machine than about the code.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { parseArgs } from "node:util"
import * as figures from "./figures.ts"

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

/** Those that compare contenders in rounds, and say what a release is judged by. */
const CHECKED = ["charges", "stores", "jobs", "http", "garbage", "replay"]

const USAGE = `npm run bench [-- NAME ...] [--rounds N] [--seconds N] [--json | --check | --keep | --plot]
NAME: ${Object.keys(benchmarks).join(", ")}; all of them by default, of ${CHECKED.join(", ")} with --check and --keep
--check fails if one is more than ${figures.ALLOWED * 100} % slower than test/bench/figures.json has it; --keep writes that file
--plot draws the curves of docs/performance.md`

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
        check: { type: "boolean", default: false },
        keep: { type: "boolean", default: false },
        plot: { type: "boolean", default: false },
        rounds: { type: "string" },
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

const isJudged = values.check || values.keep
const rounds = values.rounds ?? (isJudged ? `${figures.ROUNDS}` : "3")
const options = { rounds: Number(rounds), millis: Number(values.seconds) * 1000 }
if (!Number.isInteger(options.rounds) || options.rounds < 1) refuse(`--rounds ${rounds} is no number of rounds`)
if (isJudged && options.rounds < figures.ROUNDS) refuse(`A figure is judged by ${figures.ROUNDS} rounds or more, not ${rounds}`)
if (!(options.millis > 0)) refuse(`--seconds ${values.seconds} is no time`)

/** Runs the benchmarks of these names. Returns their rows, and the figures that a release is judged by. */
const runAll = async (isWanted: (name: string) => boolean) => {
  const results: Record<string, unknown> = {}
  const measured: Record<string, Record<string, figures.Interval>> = {}
  for (const [name, load] of Object.entries(benchmarks)) {
    if (!isWanted(name)) continue
    const { run } = await load()
    const ofThis: Record<string, figures.Interval> = {}
    const rows = await run({
      ...options,
      seen: (figure, ratio) => {
        ofThis[figure] = ratio
      }
    })
    results[name] = rows
    measured[name] = ofThis
    if (values.json) continue
    console.log(`\n${name}`)
    console.table(rows)
  }
  return { results, measured }
}

/** A benchmark that seems slower is run once more: of many figures, one is out of its interval now and then. */
const check = async (measured: figures.Figures): Promise<boolean> => {
  const kept = figures.read()
  const slower = (judged: ReadonlyArray<figures.Judged>) => judged.filter(({ verdict }) => verdict === "slower")
  const first = figures.compared(kept, measured)
  console.table(first)
  if (slower(first).length === 0) return true
  const suspects = new Set(slower(first).map(({ benchmark }) => benchmark))
  console.log(`\nOnce more: ${[...suspects].join(", ")}`)
  const again = figures.compared(kept, (await runAll((name) => suspects.has(name))).measured)
  console.table(again)
  const confirmed = slower(again).filter((one) =>
    slower(first).some(({ benchmark, figure }) => benchmark === one.benchmark && figure === one.figure)
  )
  for (const { benchmark, figure, kept, now } of confirmed) console.error(`Slower: ${benchmark}, ${figure}: ${now}, was ${kept}`)
  return confirmed.length === 0
}

if (values.plot) await (await import("./plot.ts")).draw(options)
else {
  const all = isJudged ? CHECKED : Object.keys(benchmarks)
  const names = positionals.length > 0 ? positionals : all
  const { measured, results } = await runAll((name) => names.includes(name))
  if (values.json) console.log(JSON.stringify({ node: process.version, ...options, results }))
  if (values.keep) figures.keep(measured)
  if (values.check && !(await check(measured))) process.exitCode = 1
}
