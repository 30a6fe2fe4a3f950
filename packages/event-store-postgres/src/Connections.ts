/**
 * A pool of connections to one database. Each call has its own deadline. Each statement is a transaction, sent in one message without
 * session settings or session locks. So each may run on another backend, as behind PgBouncer.
 *
 * Calls of database functions are prepared once for each connection. If the server does not know a statement that was prepared, the
 * connection leads through a pooler to changing backends. Then no statement is prepared any more, and nothing was lost but a message.
 */
import { Socket } from "node:net"
import { Effect, type Scope } from "effect"
import pg from "pg"
import { Fault, failing, faultOfConnecting, faultOfStatement, isOfPooler } from "./Fault.ts"

export interface ConnectionsOptions {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full`; missing parts come from `PGHOST` and similar variables. */
  readonly url: string
  /** The most connections of this process: 10 by default, at least 5. */
  readonly maxConnections?: number
  /** Milliseconds until a call fails and its connection is closed: 10,000 by default. */
  readonly deadline?: number
  /**
   * Whether calls of database functions are prepared once for each connection: true by default. Set it to false behind a pooler in
   * transaction mode. Otherwise the store finds out by itself, by a refused statement that it sends again.
   */
  readonly prepare?: boolean
}

export type Value = string | number | Buffer | null

/** A call of a database function. Its plan depends on no data, so it can be prepared under its name. */
export interface Call {
  readonly name: string
  readonly text: string
}

export type Statement = readonly [statement: string | Call, ...values: ReadonlyArray<Value>]

/** The call of a function of the schema, given the types of its parameters. */
export const calling = (schema: string, name: string, ...types: ReadonlyArray<string>): Call => ({
  name: `${schema}.${name}`,
  text: `SELECT * FROM ${schema}.${name}(${types.map((type, i) => `$${i + 1}::${type}`).join(", ")})`
})

/** Runs a statement inside a transaction. */
export type Run = (text: string, ...values: Array<Value>) => Promise<ReadonlyArray<pg.QueryResultRow>>

/** Milliseconds between two checks for calls past their deadline. */
const TICK = 500

/** Connections reserved for writes: appends, snapshots and state. */
const SPARE = 4

/** How long closing may take, in milliseconds. */
const GOODBYE = 2_000

/** Opens the pool. The scope closes it. */
export const make = Effect.fnUntraced(function* ({
  url,
  maxConnections = 10,
  deadline = 10_000,
  prepare = true
}: ConnectionsOptions): Effect.fn.Return<Connections, Fault, Scope.Scope> {
  const settings = yield* settingsOf(url, deadline)
  const connections = yield* Effect.acquireRelease(
    Effect.sync(() => new Connections(settings, Math.max(SPARE + 1, maxConnections), deadline, prepare)),
    (opened) => opened.close
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(TICK), connections.expireLate)))
  return connections
})

const transaction =
  <A>(body: (run: Run) => Promise<A>) =>
  async (client: pg.PoolClient): Promise<A> => {
    await client.query("BEGIN ISOLATION LEVEL READ COMMITTED")
    try {
      const result = await body(async (text, ...values) => (await client.query({ text, values })).rows)
      await client.query("COMMIT")
      return result
    } catch (error) {
      await client.query("ROLLBACK").catch(() => {})
      throw error
    }
  }

/** A call under way. Its age is counted in ticks, so a process that was suspended does not fail calls that were answered meanwhile. */
interface Running {
  ticks: number
  readonly expire: () => void
}

export class Connections {
  /** The server's name in messages: host, port and database. */
  readonly where: string
  readonly #deadline: number
  /** Limits the reads that run at a time. */
  readonly #maxReads: number
  readonly #pool: pg.Pool
  readonly #sockets = new Set<Socket>()
  readonly #running = new Set<Running>()
  readonly #waitingToRead: Array<() => void> = []
  #reading = 0
  #isClosed = false
  #prepares: boolean

  constructor({ config, where }: Settings, max: number, deadline: number, prepares: boolean) {
    this.#prepares = prepares
    this.where = where
    this.#deadline = deadline
    this.#maxReads = max - SPARE
    const stream = () => {
      const socket = new Socket()
      this.#sockets.add(socket)
      return socket.once("close", () => this.#sockets.delete(socket))
    }
    this.#pool = new pg.Pool({ ...config, stream, max, idleTimeoutMillis: 30_000 })
    // The caller of a broken connection gets the error. An idle connection that breaks needs no handling: the next call opens another
    this.#pool.on("error", () => {})
    this.#pool.on("connect", (client) => client.on("error", () => {}))
  }

  readonly close: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    this.#isClosed = true
    for (const call of [...this.#running]) call.expire()
    yield* Effect.timeoutOption(
      Effect.promise(() => this.#pool.end()),
      GOODBYE
    )
    // A server that does not answer may not close its connections either
    for (const socket of this.#sockets) socket.destroy()
  })

  /** Counts a tick, and fails the calls whose deadline has passed. */
  readonly expireLate: Effect.Effect<void> = Effect.sync(() => {
    for (const call of [...this.#running]) if (++call.ticks * TICK > this.#deadline) call.expire()
  })

  /** Runs one statement that writes. Reads never use its reserved connections. */
  write<Row extends pg.QueryResultRow>(...statement: Statement): Effect.Effect<ReadonlyArray<Row>, Fault> {
    return this.#call(false, (client) => this.#one<Row>(client, statement))
  }

  /** Runs one statement that reads. Its failure leaves nothing in doubt. */
  read<Row extends pg.QueryResultRow>(...statement: Statement): Effect.Effect<ReadonlyArray<Row>, Fault> {
    return this.#call(true, (client) => this.#one<Row>(client, statement))
  }

  /** Runs several statements in one transaction. */
  transact<A>(body: (run: Run) => Promise<A>): Effect.Effect<A, Fault> {
    return this.#call(false, transaction(body))
  }

  async #one<Row extends pg.QueryResultRow>(client: pg.PoolClient, [statement, ...values]: Statement): Promise<ReadonlyArray<Row>> {
    if (typeof statement === "string") return (await client.query<Row>({ text: statement, values })).rows
    const { name, text } = statement
    if (!this.#prepares) return (await client.query<Row>({ text, values })).rows
    try {
      return (await client.query<Row>({ name, text, values })).rows
    } catch (error) {
      if (!isOfPooler(error)) throw error
      this.#prepares = false
      return (await client.query<Row>({ text, values })).rows
    }
  }

  /** Once started, a call runs to its end even if its caller is interrupted. */
  #call<A>(isRead: boolean, use: (client: pg.PoolClient) => Promise<A>): Effect.Effect<A, Fault> {
    return Effect.callback((resume) => {
      let client: pg.PoolClient | undefined
      let isBegun = false
      let isOver = false
      const end = (answer: Effect.Effect<A, Fault>, isBroken: boolean) => {
        if (isOver) return
        isOver = true
        this.#running.delete(entry)
        // Closes a connection that is broken or still busy with an abandoned call
        client?.release(isBroken)
        if (isRead && isBegun) this.#doneReading()
        resume(answer)
      }
      const fail = (fault: Fault, isBroken: boolean) => end(Effect.fail(this.#isClosed ? failing.closed(fault.inDoubt) : fault), isBroken)
      const late = () => new Fault(`${this.where} did not answer within ${this.#deadline / 1_000} s`, { inDoubt: client !== undefined })
      const entry: Running = { ticks: 0, expire: () => fail(late(), true) }
      const run = (connected: pg.PoolClient) => {
        if (isOver) return connected.release()
        client = connected
        return use(connected).then(
          (result) => end(Effect.succeed(result), false),
          (error: unknown) => {
            const fault = faultOfStatement(error, this.where)
            fail(fault, fault.inDoubt)
          }
        )
      }
      const begin = () => {
        isBegun = true
        this.#pool.connect().then(run, (error: unknown) => fail(faultOfConnecting(error, this.where), false))
      }
      if (this.#isClosed) return resume(Effect.fail(failing.closed(false)))
      this.#running.add(entry)
      if (isRead) this.#beginReading(begin)
      else begin()
      return Effect.sync(() => {
        if (isBegun) return
        this.#waitingToRead.splice(this.#waitingToRead.indexOf(begin), 1)
        this.#running.delete(entry)
        isOver = true
      })
    })
  }

  #beginReading(begin: () => void): void {
    if (this.#reading >= this.#maxReads) return void this.#waitingToRead.push(begin)
    this.#reading++
    begin()
  }

  #doneReading(): void {
    const next = this.#waitingToRead.shift()
    if (next === undefined) this.#reading--
    else next()
  }
}

export interface Settings {
  /** The settings of one connection. */
  readonly config: pg.ClientConfig
  /** The server's name in messages, without a password. */
  readonly where: string
}

export const settingsOf = (url: string, deadline: number): Effect.Effect<Settings, Fault> =>
  Effect.try({
    try: () => {
      if (!/^postgres(ql)?:\/\//.test(url)) throw new Error("it must start with postgres:// or postgresql://")
      const config: pg.ClientConfig = {
        application_name: "millrace",
        connectionString: url,
        connectionTimeoutMillis: deadline,
        keepAlive: true,
        keepAliveInitialDelayMillis: 10_000
      }
      const { host, port, database } = new pg.Client(config)
      return { config, where: `PostgreSQL at ${host}:${port}/${database ?? ""}` }
    },
    // The message does not repeat the address, because it holds a password
    catch: (error) => new Fault(`Not the address of a PostgreSQL database: ${error instanceof Error ? error.message : ""}`)
  })
