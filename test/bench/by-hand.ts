/**
 * What a host would write without us: a balance in PostgreSQL that a transaction takes from and writes an entry about, and Fastify before
 * it. No idempotency, no refund, no history; as durable as PostgreSQL is by default.
 */
import type { AddressInfo } from "node:net"
import Fastify from "fastify"
import pg from "pg"

/** As many transactions at once as help on a few cores. */
const CONNECTIONS = 16

const SCHEMA = `
create table if not exists accounts (id text primary key, balance bigint not null);
create table if not exists entries (id uuid primary key default gen_random_uuid(), account text not null references accounts,
  operation text not null, amount bigint not null, at timestamptz not null default now());
`

/** Accounts with more credits than a benchmark can spend, in `url`. */
export const create = async (url: string, accounts: ReadonlyArray<string>): Promise<void> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(SCHEMA)
    await client.query("insert into accounts select unnest($1::text[]), 1000000000000000", [accounts])
  } finally {
    await client.end()
  }
}

export interface Accounts {
  /** Takes `price` and answers the balance after it, or undefined where there is not enough. */
  readonly charge: (account: string, operation: string, price: number) => Promise<string | undefined>
  readonly close: () => Promise<void>
}

export const open = (url: string): Accounts => {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  // Of a connection that nobody uses: the next who does is told
  pool.on("error", () => {})

  const take = async (client: pg.PoolClient, account: string, operation: string, price: number) => {
    await client.query("begin")
    const { rows } = await client.query<{ readonly balance: string }>({
      name: "take",
      text: "update accounts set balance = balance - $1 where id = $2 and balance >= $1 returning balance",
      values: [price, account]
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
    return rows[0]?.balance
  }

  return {
    charge: async (account, operation, price) => {
      const client = await pool.connect()
      try {
        return await take(client, account, operation, price)
      } finally {
        client.release()
      }
    },
    close: () => pool.end()
  }
}

/** Serves `body` for a price, to the account that `key` is the key of. */
export const serve = async (
  url: string,
  key: string,
  body: string
): Promise<{ readonly port: number; readonly close: () => Promise<void> }> => {
  await create(url, [key])
  const accounts = open(url)
  const app = Fastify()
  app.get("/api/v1/bin/:bin", async (request, reply) => {
    const balance = await accounts.charge(request.headers.authorization?.slice("Bearer ".length) ?? "", "bin.lookup", 500)
    if (balance === undefined) return reply.code(402).send({ error: { code: "insufficient_credits" } })
    return reply.header("x-credits-balance", balance).type("application/json").send(body)
  })
  await app.listen({ port: 0, host: "127.0.0.1" })
  return {
    port: (app.server.address() as AddressInfo).port,
    close: async () => {
      await app.close()
      await accounts.close()
    }
  }
}
