/**
 * A strict reader of Prometheus' text format 0.0.4: what breaks a rule of the format, or of its names, is an error. As strict as
 * `promtool check metrics`, where that only advises.
 */

const TYPES = ["counter", "gauge", "histogram", "summary", "untyped"] as const
export type Type = (typeof TYPES)[number]

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Family {
  readonly name: string
  readonly type: Type
  readonly help: string
  readonly samples: Array<Sample>
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
const HELP = new RegExp(`^# HELP (${NAME}) (.+)$`, "su")
const TYPE = new RegExp(`^# TYPE (${NAME}) (\\S+)$`, "su")
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`, "su")
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/uy

const refuse = (reason: string, line: string): never => {
  throw new Error(`${reason}: ${line}`)
}

const unescaped = (text: string): string => text.replaceAll(/\\(["\\n])/gu, (_, escape: string) => (escape === "n" ? "\n" : escape))

const labelsOf = (text: string, line: string): Readonly<Record<string, string>> => {
  const labels: Record<string, string> = {}
  LABEL.lastIndex = 0
  while (LABEL.lastIndex < text.length) {
    const [, name = "", value = ""] = LABEL.exec(text) ?? refuse("Not a label", line)
    if (name.startsWith("__")) refuse("A reserved label", line)
    if (name in labels) refuse("A label twice", line)
    labels[name] = unescaped(value)
  }
  return labels
}

const valueOf = (text: string, line: string): number => {
  if (text === "+Inf") return Number.POSITIVE_INFINITY
  if (text === "-Inf") return Number.NEGATIVE_INFINITY
  if (text === "NaN") return Number.NaN
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/u.test(text) ? Number(text) : refuse("Not a number", line)
}

const SUFFIXES = { histogram: ["_bucket", "_sum", "_count"], summary: ["", "_sum", "_count"] }

const belongs = ({ name, type }: Family, sample: string): boolean =>
  (type === "histogram" || type === "summary" ? SUFFIXES[type] : [""]).some((suffix) => sample === `${name}${suffix}`)

/** Families by name; throws at the first line that breaks a rule. */
export const parse = (text: string): ReadonlyMap<string, Family> => {
  const families = new Map<string, Family>()
  const seen = new Set<string>()
  let help: { readonly name: string; readonly text: string } | undefined
  let family: Family | undefined
  if (text !== "" && !text.endsWith("\n")) refuse("The last line does not end", text.slice(-80))
  for (const line of text.split("\n").slice(0, -1)) {
    const [, helped, about = ""] = HELP.exec(line) ?? []
    if (helped !== undefined) {
      if (/\\(?![\\n])/u.test(about.replaceAll("\\\\", ""))) refuse("An escape that is none", line)
      help = { name: helped, text: about.replaceAll(/\\([\\n])/gu, (_, escape: string) => (escape === "n" ? "\n" : escape)) }
      continue
    }
    const [, typed, kind] = TYPE.exec(line) ?? []
    if (typed !== undefined) {
      const type = TYPES.find((type) => type === kind) ?? refuse("No such type", line)
      if (families.has(typed)) refuse("A family twice", line)
      if (help?.name !== typed) refuse("A family that nobody explains", line)
      family = { name: typed, type, help: help?.text ?? "", samples: [] }
      families.set(typed, family)
      continue
    }
    const [, name = "", labels = "", value = ""] = SAMPLE.exec(line) ?? refuse("Not a line of the format", line)
    if (family === undefined || !belongs(family, name)) return refuse("A sample outside of its family", line)
    const sample = { name, labels: labelsOf(labels, line), value: valueOf(value, line) }
    const id = JSON.stringify([name, Object.entries(sample.labels).sort()])
    if (seen.has(id)) refuse("A sample twice", line)
    seen.add(id)
    family.samples.push(sample)
  }
  for (const family of families.values()) check(family)
  return families
}

const check = ({ name, type, samples }: Family): void => {
  if (type === "counter") {
    if (!name.endsWith("_total")) refuse("A counter that is not named so", name)
    for (const { value } of samples) if (!(value >= 0)) refuse("A counter below zero", name)
  }
  if (type !== "counter" && name.endsWith("_total")) refuse("Named like a counter", name)
  if (type === "histogram") checkHistogram(name, samples)
}

/** Each series of a histogram: bounds that rise, counts that never fall, and `+Inf` equal to the count. */
const checkHistogram = (name: string, samples: ReadonlyArray<Sample>): void => {
  const series = Map.groupBy(samples, ({ labels: { le: _, ...labels } }) => JSON.stringify(Object.entries(labels).sort()))
  for (const [id, points] of series) {
    const buckets = points.filter((point) => point.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) => valueOf(labels["le"] ?? "", id))
    const counts = buckets.map(({ value }) => value)
    const [count, sum] = ["count", "sum"].map((suffix) => points.filter((point) => point.name === `${name}_${suffix}`))
    if (count?.length !== 1 || sum?.length !== 1) refuse("A histogram without its sum and count", id)
    if (bounds.some((bound, i) => i > 0 && !(bound > (bounds[i - 1] ?? 0)))) refuse("Bounds that do not rise", id)
    if (counts.some((value, i) => value < (counts[i - 1] ?? 0))) refuse("Buckets that fall", id)
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY || counts.at(-1) !== count?.[0]?.value) refuse("A histogram without an end", id)
  }
}
