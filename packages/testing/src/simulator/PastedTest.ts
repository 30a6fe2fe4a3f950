/** The test that repeats a failed run: a whole file for vitest. */
import * as Faults from "./Faults.ts"
import type { Settings } from "./Settings.ts"

/** How the test gets the workload. */
export interface Source {
  /** The name under which its module exports it. */
  readonly name: string
  /** The module, as the test imports it. */
  readonly from: string
}

/** The text of the test. Without a source it runs the standard workload. */
export const pastedTest = (settings: Settings, violation: string, source: Source | undefined): string =>
  [
    `import { Simulator } from "@millrace/testing"`,
    `import { Effect } from "effect"`,
    `import { test } from "vitest"`,
    ...(source === undefined ? [] : [`import { ${source.name} } from ${JSON.stringify(source.from)}`]),
    "",
    `// ${violation.replaceAll(/\s+/gu, " ")}`,
    `test(${JSON.stringify(`seed ${settings.seed} of the simulator`)}, async () => {`,
    `  await Effect.runPromise(Simulator.run(${call(settings, source)}))`,
    "})",
    ""
  ].join("\n")

const call = ({ faults, ...settings }: Settings, source: Source | undefined): string => {
  const fields = [
    ...Object.entries(settings).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${JSON.stringify(value)}`])),
    ...(faults === undefined ? [] : [`faults: ${faultsText(faults)}`]),
    ...(source === undefined ? [] : [source.name === "workload" ? "workload" : `workload: ${source.name}`])
  ]
  return `{ ${fields.join(", ")} }`
}

/** All faults are written as what they have beyond none. */
const faultsText = (faults: Partial<Faults.Faults>): string => {
  const isWhole = Object.keys(Faults.none).every((name) => name in faults)
  const none: Readonly<Record<string, unknown>> = isWhole ? { ...Faults.none } : {}
  const beyond = Object.entries(faults).flatMap(([name, value]) =>
    value === undefined || none[name] === value ? [] : [`${name}: ${JSON.stringify(value)}`]
  )
  if (!isWhole) return `{ ${beyond.join(", ")} }`
  return beyond.length === 0 ? "Simulator.none" : `{ ...Simulator.none, ${beyond.join(", ")} }`
}
