/** The real server and the real command line as processes of their own, for tests of the whole: started, asked, stopped, killed. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { Agent, type IncomingHttpHeaders, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Schema } from "effect"
import { inject } from "vitest"
import { obtain } from "../OnRequest.ts"
import { millrace } from "./InProcess.ts"
import { undoAfterwards } from "./Leftovers.ts"

export type Environment = Readonly<Record<string, string>>

declare module "vitest" {
  interface ProvidedContext {
    /** Where the command line of this run is asked for. */
    readonly program: string
  }
}

/** The command line as a checkout has it: it runs the sources. */
export const bin = fileURLToPath(new URL("../../packages/millrace/bin/millrace.js", import.meta.url))

/** The same, made of the sources by `test/program.ts`: a process of it costs half as much. */
export const program = await obtain(inject("program"))
/** What V8 compiles of it is kept beside it, and goes when it does. */
export const compiledBeside: Environment = { NODE_COMPILE_CACHE: fileURLToPath(new URL("../compiled", pathToFileURL(program))) }

/** The environment of a stranger: none of our settings, and nothing that a test runner adds. */
const environment = (added: Environment): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:MILLRACE_|NODE_OPTIONS$|VITEST)/u.test(name))),
  ...added
})

/** A folder of a test's own, removed with its file's. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-system-"))
  undoAfterwards(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** An SQLite store that is not there yet, in a folder of its own. */
export const newStore = (): { readonly folder: string; readonly url: string; readonly file: string } => {
  const folder = temporaryFolder()
  const file = join(folder, "millrace.db")
  return { folder, file, url: `sqlite:${file}` }
}

// processes

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Options {
  readonly env?: Environment
  readonly cwd?: string
  /** Whom it runs as, where this process may choose. */
  readonly uid?: number
  /** The Node.js that runs it: this one, unless given. */
  readonly node?: string
  readonly nodeArgs?: ReadonlyArray<string>
  /** What it runs: {@link program}, unless given; nothing, when null. */
  readonly script?: string | null
}

/** A running `millrace`; killed after the last test of its file, if it has not ended by then. */
export class Process {
  stdout = ""
  stderr = ""
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  #waiting: Array<() => void> = []

  constructor(args: ReadonlyArray<string>, options: Options = {}) {
    const { env = {}, cwd, uid, node = process.execPath, nodeArgs = [], script = program } = options
    const child = spawn(node, [...nodeArgs, ...(script === null ? [] : [script]), ...args], {
      env: environment(script === program ? { ...compiledBeside, ...env } : env),
      stdio: ["ignore", "pipe", "pipe"],
      ...(cwd === undefined ? {} : { cwd }),
      ...(uid === undefined ? {} : { uid, gid: uid })
    })
    this.child = child
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text
      this.#changed()
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text
      this.#changed()
    })
    this.ended = new Promise((resolve) => child.once("close", resolve).once("error", resolve)).then(() => {
      this.#changed()
      return { code: child.exitCode, stdout: this.stdout, stderr: this.stderr }
    })
    undoAfterwards(() => this.kill())
  }

  /** Waits until it is true of what was printed; fails when the process ends before. */
  async until(isIt: () => boolean): Promise<void> {
    while (!isIt()) {
      if (this.child.exitCode !== null || this.child.signalCode !== null) {
        throw new Error(`It ended with ${this.child.exitCode ?? this.child.signalCode}: ${this.stdout}${this.stderr}`)
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  /** As an operator ends it: running calls end first. */
  stop(): Promise<Ended> {
    this.child.kill("SIGTERM")
    return this.ended
  }

  /** As a power cut does. */
  kill(): Promise<Ended> {
    this.child.kill("SIGKILL")
    return this.ended
  }

  #changed(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}

/** Runs a command to its end, as a process of its own. */
export const runProcess = (args: ReadonlyArray<string>, options?: Options): Promise<Ended> => new Process(args, options).ended

/** What a command that succeeds answers, in exactly this shape. */
export const ask = async <A>(shape: Schema.Codec<A, unknown>, args: ReadonlyArray<string>): Promise<A> => {
  const { code, stdout, stderr } = await millrace(args)
  if (code !== 0) throw new Error(`millrace ${args.join(" ")} ended with ${code}: ${stderr}`)
  return Schema.decodeUnknownSync(shape, { onExcessProperty: "error" })(JSON.parse(stdout))
}

/** A server that listens. */
export interface Server extends Process {
  readonly url: string
  readonly port: number
  /** Where it receives mail, if it does. */
  readonly smtp: string | undefined
  /** Where its metrics are, if it has any. */
  readonly metrics: string | undefined
}

const Listening = Schema.fromJsonString(
  Schema.Struct({ listening: Schema.String, metrics: Schema.optionalKey(Schema.String), smtp: Schema.optionalKey(Schema.String) })
)

/** Starts a server on any free port and waits until it says that it listens. */
export const serve = async (args: ReadonlyArray<string>, options?: Options): Promise<Server> => {
  const server = new Process(["serve", ...(args.includes("--port") ? [] : ["--port", "0"]), ...args], options)
  await server.until(() => server.stdout.includes("\n"))
  const [line = ""] = server.stdout.split("\n", 1)
  const { listening: url, metrics, smtp } = Schema.decodeUnknownSync(Listening)(line)
  return Object.assign(server, { url, port: Number(new URL(url).port), metrics, smtp })
}

/** So often as no test calls. */
export const UNLIMITED: Environment = { MILLRACE_RATE_LIMIT: "100000000/60" }

// the shapes of what commands answer

export const Opened = Schema.Struct({ account: Schema.String, key: Schema.String, balance: Schema.Finite })
export const Granted = Schema.Struct({ lot: Schema.String, balance: Schema.Finite })
export const Issued = Schema.Struct({ keyId: Schema.String, key: Schema.String })

export const Hold = Schema.Struct({
  reservation: Schema.String,
  operation: Schema.String,
  amount: Schema.Finite,
  request: Schema.String,
  expiresAt: Schema.NullOr(Schema.String)
})

export const Balance = Schema.Struct({
  account: Schema.String,
  available: Schema.Finite,
  held: Schema.Finite,
  debt: Schema.Finite,
  threshold: Schema.NullOr(Schema.Finite),
  recurring: Schema.Array(Schema.Unknown),
  at: Schema.String,
  lots: Schema.Array(
    Schema.Struct({ lot: Schema.String, source: Schema.String, remaining: Schema.Finite, expiresAt: Schema.NullOr(Schema.String) })
  ),
  holds: Schema.Array(Hold)
})

export const Head = Schema.Struct({
  position: Schema.String,
  streams: Schema.Int,
  events: Schema.Int,
  digest: Schema.String,
  at: Schema.NullOr(Schema.String),
  buckets: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
})

export const Restored = Schema.Struct({
  restored: Schema.String,
  from: Schema.String,
  madeAt: Schema.String,
  ok: Schema.Boolean,
  problems: Schema.Int,
  events: Schema.Int,
  keys: Schema.Int,
  refused: Schema.Array(Schema.String),
  head: Head,
  reconcile: Schema.Array(Schema.Struct({ what: Schema.String, count: Schema.NullOr(Schema.Int), advice: Schema.String }))
})

const Finding = Schema.Struct({
  position: Schema.String,
  stream: Schema.String,
  rule: Schema.String,
  detail: Schema.String,
  line: Schema.optionalKey(Schema.Int),
  means: Schema.Struct({
    account: Schema.NullOr(Schema.String),
    lot: Schema.optionalKey(Schema.String),
    before: Schema.optionalKey(Schema.Finite),
    after: Schema.optionalKey(Schema.Finite),
    credits: Schema.optionalKey(Schema.Finite),
    worth: Schema.optionalKey(Schema.String),
    sentence: Schema.String
  })
})

export const Audit = Schema.Struct({
  ok: Schema.Boolean,
  events: Schema.Int,
  streams: Schema.Int,
  accounts: Schema.Int,
  lots: Schema.Int,
  holds: Schema.Int,
  prices: Schema.Int,
  jobs: Schema.Int,
  apiKeys: Schema.Struct({ issued: Schema.Int, revoked: Schema.Int }),
  from: Schema.NullOr(Schema.String),
  to: Schema.NullOr(Schema.String),
  seconds: Schema.Finite,
  head: Head,
  problems: Schema.Array(Finding),
  keys: Schema.NullOr(
    Schema.Struct({
      present: Schema.Int,
      destroyed: Schema.Int,
      erasedAccounts: Schema.Int,
      purgedJobs: Schema.Int,
      others: Schema.Int
    })
  )
})

const Event = Schema.Struct({
  position: Schema.String,
  stream: Schema.String,
  revision: Schema.Int,
  id: Schema.String,
  type: Schema.String,
  at: Schema.String,
  data: Schema.Record(Schema.String, Schema.Unknown),
  metadata: Schema.Record(Schema.String, Schema.Unknown)
})
export type Event = typeof Event.Type

/** The log as the command line prints it. */
export const eventsOf = (stdout: string): ReadonlyArray<Event> =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => Schema.decodeUnknownSync(Event, { onExcessProperty: "error" })(JSON.parse(line)))

export const readLog = async (store: string): Promise<ReadonlyArray<Event>> => {
  const { code, stdout, stderr } = await millrace(["events", "--store", store])
  if (code !== 0) throw new Error(stderr)
  return eventsOf(stdout)
}

/** An account with so many credits, and its key. */
/** Opens an account that was not verified. Without credits it has no address either, so that it has no trial. */
export const openAccount = async (store: string, credits: number, email = `${crypto.randomUUID()}@example.com`) => {
  const name = credits > 0 ? "--email" : "--id"
  const { account, key } = await ask(Opened, ["accounts", "open", "--store", store, name, email])
  if (credits > 0) await grant(store, account, credits)
  return { account, key }
}

export const grant = (store: string, account: string, credits: number) =>
  ask(Granted, ["credits", "grant", "--store", store, "--account", account, "--amount", String(credits), "--source", "promotion"])

/** An audit that finds nothing. */
export const auditOf = (store: string): Promise<typeof Audit.Type> => ask(Audit, ["audit", "--store", store])

export const balanceOf = (store: string, account: string, ...args: ReadonlyArray<string>): Promise<typeof Balance.Type> =>
  ask(Balance, ["balance", "--store", store, "--account", account, ...args])

// calls

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Call {
  readonly method?: string
  readonly key?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as it is. */
  readonly body?: string | Uint8Array
}

/** Connections that stay open between the calls of one client, as real clients keep them. */
export const clientAgent = (): Agent => new Agent({ keepAlive: true, maxSockets: 256 })

/** One call; rejects when the connection fails before the whole answer is there. */
export const call = (url: string, { method = "GET", key, headers = {}, body }: Call = {}, agent?: Agent): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        method,
        agent: agent ?? false,
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
          ...headers
        }
      },
      (incoming) => {
        let text = ""
        incoming.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk
        })
        incoming.once("error", reject)
        incoming.once("end", () => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: text }))
      }
    )
    outgoing.once("error", reject)
    outgoing.end(body)
  })

/** The one value of a header. */
export const header = ({ headers }: Answer, name: string): string => {
  const value = headers[name]
  if (typeof value !== "string") throw new Error(`No header ${name} among ${Object.keys(headers).join(", ")}`)
  return value
}

const Problem = Schema.fromJsonString(
  Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String, request_id: Schema.String }) })
)

/** The error object of an answer. */
export const problemOf = ({ body }: Answer) => Schema.decodeUnknownSync(Problem, { onExcessProperty: "error" })(body).error

export const BIN = "/api/v1/bin/45717360"
/** What it costs, in credits. */
export const BIN_PRICE = 0.5
export const GRAMMAR = "/api/v1/grammar/check"
export const GRAMMAR_PRICE = 1
