/** The operations that come with Millrace, for calls in code: `millrace.run(standard.bin.lookup, { bin: "45717360" }, { account })`. */
import { Operation as Core, Standard } from "@millrace/core"
import type { Api } from "@millrace/http"
import { Effect, type Schema } from "effect"
import { Mistake } from "./Given.ts"
import { type Companions, type Job, readOf } from "./Job.ts"
import { invalid, type Operation } from "./Operation.ts"
import * as Schemas from "./Schemas.ts"

type Groups = typeof Standard.groups
type Any = Groups[keyof Groups]["operations"][number]

/** Operations that are called in code. Files are read by `jobs.file`. */
type Callable = Exclude<Any, { readonly _tag: "File" }>
type AreaOf<Key extends string> = Key extends `${infer Area}.${string}` ? Area : never
type NameOf<Key extends string> = Key extends `${string}.${infer Name}` ? Name : never
type InputOf<Rt extends Core.Route> = Schema.Struct.Encoded<Rt["params"] & Rt["query"] & Rt["body"]>
type DescriptorOf<Op> =
  Op extends Core.Call<string, infer Rt, infer Success, infer _E, infer _R>
    ? Operation<InputOf<Rt>, Success["Encoded"]>
    : Op extends Core.Job<string, infer Rt, infer _Success, infer _E, infer _R, infer Result, infer _C>
      ? Job<InputOf<Rt>, Result>
      : never

/** By area and name: `dns.resolve` is `standard.dns.resolve`. */
export type StandardOperations = {
  readonly [Area in AreaOf<Callable["key"]>]: {
    readonly [Op in Extract<Callable, { readonly key: `${Area}.${string}` }> as NameOf<Op["key"]>]: DescriptorOf<Op>
  }
}

/** Names standard operations: one by its key, those of an area such as `dns`, or those of a group of the documentation such as `lookups`. */
export type StandardName = Any["key"] | AreaOf<Any["key"]> | keyof Groups

const areaOf = (key: string): string => key.split(".", 1)[0] ?? key

/** Validates the input of a call. The schema is converted at the first one. */
const decoderOf = ({ key, route }: Core.Any) => {
  let converted: Schemas.Converted | undefined
  return (input: unknown) => {
    converted ??= Schemas.convert(Core.inputOf(route), "input", `the input of ${JSON.stringify(key)}`)
    return Effect.mapError(converted.validate(input), invalid) as Effect.Effect<object, ReturnType<typeof invalid>>
  }
}

/** The operations of the job's path: they read, cancel and download it. */
const companionsOf = ({ family, key, summary }: Core.AnyJob): Companions => {
  const at = (method: string, path: string) => Standard.operations.find(({ route }) => route.method === method && route.path === path)
  const [reads, cancel, download] = [at("GET", family.path), at("DELETE", family.path), at("GET", `${family.path}/artifact`)]
  if (reads === undefined) throw new Error(`No operation reads the jobs of ${key}`)
  // Reads a job in the form of a host's own jobs, at the price of the operation that reads it over HTTP
  const read = readOf(reads.key, family, summary, {})
  return { read, ...(cancel && { cancel }), ...(download && { download }) }
}

// biome-ignore lint/suspicious/noExplicitAny: operations of any services
const describe = (operation: Core.AnyCall | Core.AnyJob): Operation<unknown, unknown, any> | Job<unknown, unknown, any> => {
  const { key, price = 0 } = operation
  const decode = decoderOf(operation)
  return operation._tag === "Call"
    ? { _tag: "Operation", key, price, core: operation, decode }
    : { _tag: "Job", key, price, core: operation, decode, companions: companionsOf(operation) }
}

const describeAll = () => {
  const areas: Record<string, Record<string, unknown>> = {}
  for (const operation of Standard.operations) {
    if (operation._tag === "File") continue
    const area = areaOf(operation.key)
    areas[area] = { ...areas[area], [operation.key.slice(area.length + 1)]: describe(operation) }
  }
  return areas
}

/** The operations that come with Millrace. A host serves those that the option `standard` of `createMillrace` names. */
export const standard: StandardOperations = describeAll() as unknown as StandardOperations

/**
 * The chosen operations by group. A job comes with the free operations of its area, which read, cancel and download it. Throws a sentence
 * for a name that nothing has.
 */
export const chosen = (names: true | ReadonlyArray<StandardName>): Api.Groups => {
  const groups: ReadonlyArray<readonly [string, Api.Groups[string]]> = Object.entries(Standard.groups)
  if (names === true) return Object.fromEntries(groups)
  const isNamed = (name: string, group: string, key: string) => name === key || name === areaOf(key) || name === group
  const unknown = names.find((name) => !groups.some(([group, { operations }]) => operations.some(({ key }) => isNamed(name, group, key))))
  if (unknown !== undefined)
    throw new Mistake(
      `createMillrace was given the standard operation ${JSON.stringify(unknown)}, which there is not: name a key such as "bin.lookup", an area such as "dns", or a group such as "lookups"`
    )
  const selected = groups.map(([group, { operations, ...rest }]) => {
    const own = operations.filter(({ key }) => names.some((name) => isNamed(name, group, key)))
    const ofJobs = new Set(own.flatMap(({ _tag, key }) => (_tag === "Job" ? [areaOf(key)] : [])))
    const isFree = ({ key, price }: Core.Any) => price === 0 && ofJobs.has(areaOf(key))
    return [group, { ...rest, operations: operations.filter((one) => own.includes(one) || isFree(one)) }] as const
  })
  return Object.fromEntries(selected.filter(([, { operations }]) => operations.length > 0)) as unknown as Api.Groups
}
