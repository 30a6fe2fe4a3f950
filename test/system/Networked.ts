/** Stores that several hosts share, each a test's own: a database on PostgreSQL, and a stand-in of KurrentDB. Removed with the test's file's. */
import { randomUUID } from "node:crypto"
import { Effect, Exit, Scope } from "effect"
import { KurrentDbStandIn } from "../../packages/event-store-kurrentdb/test/standin/index.ts"
import * as Postgres from "../../packages/event-store-postgres/test/Postgres.ts"
import { undoAfterwards } from "./Leftovers.ts"

/** The address of a new database. */
export const newDatabase = async (): Promise<string> => {
  const name = `millrace_${randomUUID().replaceAll("-", "")}`
  const url = await Postgres.url()
  const run = (statement: string) =>
    Effect.runPromise(Effect.scoped(Effect.flatMap(Postgres.client(url), (db) => Effect.promise(() => db.query(statement)))))
  await run(`CREATE DATABASE ${name}`)
  undoAfterwards(() => run(`DROP DATABASE ${name} WITH (FORCE)`))
  return Object.assign(new URL(url), { pathname: `/${name}` }).href
}

export interface Node extends KurrentDbStandIn.KurrentDbStandIn {
  readonly end: () => Promise<void>
}

export const startNode = async (options: KurrentDbStandIn.Options = {}): Promise<Node> => {
  const scope = await Effect.runPromise(Scope.make())
  const node = await Effect.runPromise(Scope.provide(KurrentDbStandIn.serve(options), scope))
  const end = () => Effect.runPromise(Scope.close(scope, Exit.void))
  undoAfterwards(end)
  return { ...node, end }
}
