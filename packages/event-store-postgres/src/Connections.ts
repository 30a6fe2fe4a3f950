/**
 * A pool of connections to one database, each call with a deadline of its own. A statement is a transaction, in one message and one
 * answer, without named statements, settings of a session or locks of a session: so each may reach another backend, as behind PgBouncer.
 */
import { Socket } from "node:net"
import { Effect, type Scope } from "effect"
import pg from "pg"
import { Fault, faultOfConnecting, faultOfStatement } from "./Fault.ts"

export interface ConnectionsOptions {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full`; what it leaves out comes from `PGHOST` and its kin. */
  readonly url: string
  /** Connections of this process: 10 by default, at least 5. */
  readonly maxConnections?: number
  /** How long any call may take before it is given up and its connection closed, in milliseconds: 10,000 by default. */
  readonly deadline?: number
}

export type Value = string | number | Buffer | null

export type Statement = readonly [text: string, ...values: ReadonlyArray<Value>]

/** Runs a statement inside a transaction. */
export type Run = (...statement: Statement) => Promise<ReadonlyArray<pg.QueryResultRow>>

export interface Connections {
  /** The server in messages: host, port and database. */
  readonly where: string
  /** One statement that writes: a connection is always left for it, however many read. */
  readonly write: <Row extends pg.QueryResultRow>(...statement: Statement) => Effect.Effect<ReadonlyArray<Row>, Fault>
  /** One statement that reads, so that nothing is ever in doubt. */
  readonly read: <Row extends pg.QueryResultRow>(...statement: Statement) => Effect.Effect<ReadonlyArray<Row>, Fault>
  /** Several statements in one transaction. */
  readonly transact: <A>(body: (run: Run) => Promise<A>) => Effect.Effect<A, Fault>
}

/** How often the running calls are looked through for those that are late, in milliseconds. */
const TICK = 500

/** A call under way. Its age is counted in ticks of this process, so that one which was stopped does not give up what was answered meanwhile. */
interface Running {
  ticks: number
  readonly expire: () => void
}

/** Connections that reads leave to writes: appends, snapshots and state. */
const SPARE = 4

/** How long closing may take, in milliseconds. */
const GOODBYE = 2_000

export const make = Effect.fnUntraced(function* ({
  url,
  maxConnections = 10,
  deadline = 10_000
}: ConnectionsOptions): Effect.fn.Return<Connections, Fault, Scope.Scope> {
  const max = Math.max(SPARE + 1, maxConnections)
  const { config, where } = yield* settingsOf(url, deadline)
  const running = new Set<Running>()
  const waitingToRead: Array<() => void> = []
  let reading = 0
  let isClosed = false

  const sockets = new Set<Socket>()
  const stream = () => {
    const socket = new Socket()
    sockets.add(socket)
    return socket.once("close", () => sockets.delete(socket))
  }

  const pool = yield* Effect.acquireRelease(
    Effect.sync(() => new pg.Pool({ ...config, stream, max, idleTimeoutMillis: 30_000 })),
    (opened) =>
      Effect.gen(function* () {
        isClosed = true
        for (const call of [...running]) call.expire()
        yield* Effect.timeoutOption(
          Effect.promise(() => opened.end()),
          GOODBYE
        )
        // A server that does not answer does not say good-bye either
        for (const socket of sockets) socket.destroy()
      })
  )
  // A connection that breaks is told to whoever waits for it, and otherwise not missed: the next call opens another
  pool.on("error", () => {})
  pool.on("connect", (client) => client.on("error", () => {}))

  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        Effect.sleep(TICK),
        Effect.sync(() => {
          for (const call of [...running]) if (++call.ticks * TICK > deadline) call.expire()
        })
      )
    )
  )

  const doneReading = () => {
    const next = waitingToRead.shift()
    if (next === undefined) reading--
    else next()
  }

  /** Whoever is interrupted meanwhile leaves the call to end by itself, unless it has not begun. */
  const call = <A>(isRead: boolean, use: (client: pg.PoolClient) => Promise<A>): Effect.Effect<A, Fault> =>
    Effect.callback((resume) => {
      let client: pg.PoolClient | undefined
      let isBegun = false
      let isOver = false
      const end = (answer: Effect.Effect<A, Fault>, isBroken: boolean) => {
        if (isOver) return
        isOver = true
        running.delete(entry)
        // One that is broken, or busy with what nobody waits for any more, is closed
        client?.release(isBroken)
        if (isRead && isBegun) doneReading()
        resume(answer)
      }
      const fail = (fault: Fault, isBroken: boolean) => end(Effect.fail(isClosed ? closed(fault.inDoubt) : fault), isBroken)
      const entry: Running = {
        ticks: 0,
        expire: () =>
          fail(new Fault("late", `${where} did not answer within ${deadline / 1_000} s`, { inDoubt: client !== undefined }), true)
      }
      const begin = () => {
        isBegun = true
        pool.connect().then(
          (connected) => {
            if (isOver) return connected.release()
            client = connected
            return use(connected).then(
              (result) => end(Effect.succeed(result), false),
              (error: unknown) => {
                const fault = faultOfStatement(error, where)
                fail(fault, fault.inDoubt)
              }
            )
          },
          (error: unknown) => fail(faultOfConnecting(error, where), false)
        )
      }
      if (isClosed) return resume(Effect.fail(closed(false)))
      running.add(entry)
      if (!isRead) begin()
      else if (reading < max - SPARE) {
        reading++
        begin()
      } else waitingToRead.push(begin)
      return Effect.sync(() => {
        if (isBegun) return
        waitingToRead.splice(waitingToRead.indexOf(begin), 1)
        running.delete(entry)
        isOver = true
      })
    })

  const one =
    <Row extends pg.QueryResultRow>([text, ...values]: Statement) =>
    async (client: pg.PoolClient): Promise<ReadonlyArray<Row>> =>
      (await client.query<Row>({ text, values })).rows

  return {
    where,
    write: <Row extends pg.QueryResultRow>(...statement: Statement) => call(false, one<Row>(statement)),
    read: <Row extends pg.QueryResultRow>(...statement: Statement) => call(true, one<Row>(statement)),
    transact: (body) =>
      call(false, async (client) => {
        await client.query("BEGIN ISOLATION LEVEL READ COMMITTED")
        try {
          const result = await body(async (text, ...values) => (await client.query({ text, values })).rows)
          await client.query("COMMIT")
          return result
        } catch (error) {
          await client.query("ROLLBACK").catch(() => {})
          throw error
        }
      })
  }
})

const closed = (inDoubt: boolean) => new Fault("closed", "The store was closed", { inDoubt })

export interface Settings {
  /** For one connection. */
  readonly config: pg.ClientConfig
  /** The server in messages, without a password. */
  readonly where: string
}

export const settingsOf = (url: string, deadline: number): Effect.Effect<Settings, Fault> =>
  Effect.try({
    try: () => {
      if (!/^postgres(ql)?:\/\//.test(url)) throw new Error("it starts with postgres:// or postgresql://")
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
    // Not what was given: it holds a password
    catch: (error) => new Fault("unreachable", `Not the address of a PostgreSQL database: ${error instanceof Error ? error.message : ""}`)
  })
