/**
 * An endpoint as the specification has it: one row of its tables, with what the text around them says of the same endpoint. Beside it
 * stand samples, values that a working service takes, so that a row can be driven.
 */

/** Of a parameter, wherever it stands. Bounds that the specification does not state are left out. */
export type Parameter = Text | Choice | Numeric | Flag | List

interface Common {
  readonly required: boolean
}

/** Lengths in characters. */
export interface Text extends Common {
  readonly type: "string"
  readonly minLength?: number
  readonly maxLength?: number
  /** Left out where nothing can be known that is good: the id of something that another call makes. */
  readonly sample?: string
  /** Another good value, of just this length. Null: which there are is for each host to say, so the longest may not be one of them. */
  readonly ofLength: ((length: number) => string) | null
  /** Of a good length, and still not what is asked for. */
  readonly malformed: ReadonlyArray<string>
  /** Well-formed, but of nothing there is. */
  readonly unknown?: string
}

/** One of some values; in a body integers are numbers. */
export interface Choice extends Common {
  readonly type: "string" | "integer"
  readonly oneOf: readonly [string | number, ...ReadonlyArray<string | number>]
}

export interface Numeric extends Common {
  readonly type: "integer" | "number"
  readonly minimum?: number
  readonly maximum?: number
  readonly sample: number
}

export interface Flag extends Common {
  readonly type: "boolean"
  /** What alone will do, where only one value does. */
  readonly only?: boolean
  /** What is said to lack, where the other value is sent: the parameter itself by default. */
  readonly lacks?: string
}

export interface List extends Common {
  readonly type: "strings"
  readonly minItems?: number
  readonly maxItems?: number
  readonly item: string
}

export type Parameters = Readonly<Record<string, Parameter>>

export const PLACES = ["path", "query", "body", "header"] as const
export type Place = (typeof PLACES)[number]

export type Method = "GET" | "POST" | "DELETE"

export interface Row {
  readonly method: Method
  /** From the root, parameters in braces. */
  readonly path: string
  /** By their place. No two have one name. */
  readonly parameters: Readonly<Record<Place, Parameters>>
  /** Names the operation in the price plan. */
  readonly key: string
  /** Undefined where the specification states no cost. */
  readonly price: Price | undefined
  /** Of a success. */
  readonly status: 200 | 201 | 202
  /** Of refusals and failures. */
  readonly errors: ReadonlyArray<401 | 402 | 404 | 422 | 429 | 503>
  readonly authentication: "bearer" | "none"
  /** Raw bytes, a document by itself, or data in an envelope. */
  readonly answer: "envelope" | "bytes" | "document"
  /** Whether a call is answered by a job, which is charged when it has succeeded. */
  readonly makesJob: boolean
  /** Key of the row whose call makes what the parameter `job` names. */
  readonly madeBy: string | undefined
  /** What has to be sent beside what is required, for a call to make sense. */
  readonly beside: Readonly<Record<string, unknown>>
  /** What the specification leaves open: parameters, costs and answers that it calls "not shown". */
  readonly notShown: ReadonlyArray<string>
}

export interface Price {
  readonly credits: number
  readonly per: "call" | "email" | "session"
}

/** Every parameter with its place, in the order of the places. */
export const parametersOf = ({ parameters }: Row): ReadonlyArray<Named> =>
  PLACES.flatMap((place) => Object.entries(parameters[place]).map(([name, parameter]) => ({ name, place, parameter })))

export interface Named {
  readonly name: string
  readonly place: Place
  readonly parameter: Parameter
}

// parameters

type Optional<A> = Partial<Omit<A, "type">>

const PROSE = "A quiet evening by the sea. "

/** Prose of just this length. */
export const prose = (length: number): string => PROSE.repeat(Math.ceil(length / PROSE.length)).slice(0, length)

export const text = (given: Optional<Text> = {}): Text => ({
  type: "string",
  required: false,
  sample: prose(20),
  ofLength: prose,
  malformed: [],
  ...given
})

/** Text of which no sample can be given, but by somebody who knows the rest of the call. */
export const source = (given: Optional<Text> = {}): Text => ({ type: "string", required: false, ofLength: null, malformed: [], ...given })

/** Of something that another call makes. */
export const id = (): Text => ({ type: "string", required: true, ofLength: null, malformed: [], unknown: "nothing_of_this_id" })

/** Of a job that the test makes beforehand. */
export const jobId = (): Text => ({ ...id(), sample: "the job" })

/** Of an inbox, or of what it received, that the test makes beforehand. */
export const inboxId = (): Text => ({ ...id(), sample: "the inbox" })
export const messageId = (): Text => ({ ...id(), sample: "the message" })

/** Of a payment that the test requests beforehand. */
export const paymentId = (): Text => ({ ...id(), sample: "the payment" })

export const choice = (oneOf: Choice["oneOf"], { required = false }: Partial<Common> = {}): Choice => ({
  type: oneOf.every((value) => typeof value === "number") ? "integer" : "string",
  required,
  oneOf
})

export const integer = (given: Optional<Numeric> = {}): Numeric => ({
  type: "integer",
  required: false,
  sample: given.maximum ?? given.minimum ?? 1,
  ...given
})

export const number = (given: Optional<Numeric> = {}): Numeric => ({ type: "number", required: false, sample: 9.99, ...given })

export const flag = (given: Optional<Flag> = {}): Flag => ({ type: "boolean", required: false, ...given })

export const strings = (given: Optional<List> = {}): List => ({ type: "strings", required: false, item: "one", ...given })

// values of a form that a working service looks into

/** A domain of just this length: at least 13 characters. */
export const domainOf = (length: number): string => {
  const [parent, label] = ["example.com", 50]
  const name = Array.from({ length: length - parent.length - 1 }, (_, i) => (i % label === label - 1 ? "." : "a")).join("")
  return `${name.replace(/\.$/u, "a")}.${parent}`
}

/** Of just this length, with a domain that is as long as it can be. */
export const emailOf = (length: number): string => {
  const domain = Math.min(253, length - 2)
  return `${"a".repeat(length - domain - 1)}@${domainOf(domain)}`
}

export const urlOf = (length: number): string => "https://shop.example.com/p?".padEnd(length, "a")

export const domain = (given: Optional<Text> = {}): Text =>
  text({ sample: "example.com", ofLength: domainOf, unknown: "nowhere.example.com", ...given })
export const email = (given: Optional<Text> = {}): Text => text({ sample: "grace.hopper@example.com", ofLength: emailOf, ...given })
export const url = (given: Optional<Text> = {}): Text =>
  text({ sample: "https://shop.example.com/p/7", ofLength: urlOf, maxLength: 2048, ...given })

// rows

export interface Given extends Partial<Record<Place, Parameters>> {
  /** Credits for each call. */
  readonly price?: number | Price
  readonly status?: Row["status"]
  readonly authentication?: Row["authentication"]
  readonly answer?: Row["answer"]
  readonly makesJob?: boolean
  readonly madeBy?: string
  readonly beside?: Row["beside"]
  readonly notShown?: Row["notShown"]
}

const PREFIX = "/api/v1"

/** `path` is below the prefix that all have. */
export const row = (method: Method, path: string, key: string, given: Given = {}): Row => {
  const { price, status = 200, authentication = "bearer", answer = "envelope", makesJob = false, madeBy, beside = {}, ...rest } = given
  const { notShown = [], ...places } = rest
  return {
    method,
    path: `${PREFIX}${path}`,
    parameters: { path: {}, query: {}, body: {}, header: {}, ...places },
    key,
    price: typeof price === "number" ? { credits: price, per: "call" } : price,
    status,
    errors: errorsOf(authentication, places.path !== undefined),
    authentication,
    answer,
    makesJob,
    madeBy,
    beside,
    notShown: price === undefined ? ["cost", ...notShown] : notShown
  }
}

/** By the table of errors. What needs no key is at nobody's cost, so it knows no want of credits. */
const errorsOf = (authentication: Row["authentication"], hasIdentifier: boolean): Row["errors"] => [
  ...(authentication === "bearer" ? ([401, 402] as const) : []),
  ...(hasIdentifier ? ([404] as const) : []),
  422,
  429,
  503
]
