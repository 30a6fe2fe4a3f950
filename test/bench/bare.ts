/**
 * What this machine can do: plain promises and a hand-written loop that decides and inserts the same two events for each charge,
 * hash chain included, in grouped transactions on the same SQLite. No names, no services, no recovery, no reads.
 */

import { hash } from "node:crypto"
import { join } from "node:path"
import Database from "better-sqlite3"

interface Command {
  readonly account: number
  readonly kind: "reserve" | "settle"
  readonly id: string
  readonly resolve: () => void
}

const LOT = "lot_01M7YKD46JCP6VGMKADN3JSPJP"
const REPLY = hash("sha256", `{"ok":true}`, "base64url")
const AMOUNT = 500

export const open = (folder: string, accounts: number) => {
  const db = new Database(join(folder, `bare-${process.hrtime.bigint()}.db`))
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 10000;
    CREATE TABLE events(position INTEGER PRIMARY KEY, stream INTEGER NOT NULL, revision INTEGER NOT NULL, id TEXT NOT NULL,
    type TEXT NOT NULL, data TEXT NOT NULL, metadata TEXT NOT NULL, UNIQUE(revision, stream)) STRICT`)
  const insert = db.prepare("INSERT INTO events(stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?)")
  const states = Array.from({ length: accounts }, () => ({ balance: 1e15, open: new Map<string, number>(), revision: -1, chain: "" }))
  let queue: Array<Command> = []
  let scheduled = false
  let next = 0

  const eventOf = (state: (typeof states)[number], { kind, id }: Command) => {
    if (kind === "reserve") {
      if (state.balance < AMOUNT) throw new Error("insufficient")
      state.balance -= AMOUNT
      state.open.set(id, AMOUNT)
      const lots = [{ lotId: LOT, amount: AMOUNT }]
      const expiresAt = new Date(1_795_249_574_135).toISOString()
      return {
        type: "CreditReserved",
        data: { reservationId: id, requestId: id, operation: "bench.noop", quantity: 1, priceVersion: 1, amount: AMOUNT, lots, expiresAt }
      }
    }
    if (!state.open.delete(id)) throw new Error("not open")
    const lots = [{ lotId: LOT, amount: AMOUNT }]
    return { type: "OperationSucceeded", data: { reservationId: id, charged: AMOUNT, quantity: 1, lots, replyHash: REPLY } }
  }

  const flush = () => {
    scheduled = false
    const group = queue
    queue = []
    const at = new Date().toISOString()
    db.exec("BEGIN IMMEDIATE")
    for (const command of group) {
      const state = states[command.account]
      if (state === undefined) throw new Error("no account")
      const { type, data } = eventOf(state, command)
      const json = JSON.stringify(data)
      const id = `019a${(next++).toString(16).padStart(12, "0")}-7000-8000-000000000000`
      state.revision++
      const rest = `","at":"${at}","$correlationId":"${command.id}"}`
      state.chain = hash(
        "sha256",
        `${state.chain}\n${command.account}\n${state.revision}\n${id}\n${type}\n${at}\n${json}\n${rest}`,
        "base64url"
      )
      insert.run(command.account, state.revision, id, type, json, `{"hash":"${state.chain}${rest}`)
    }
    db.exec("COMMIT")
    for (const { resolve } of group) resolve()
  }

  const submit = (account: number, kind: Command["kind"], id: string) =>
    new Promise<void>((resolve) => {
      queue.push({ account, kind, id, resolve })
      if (scheduled) return
      scheduled = true
      setImmediate(flush)
    })

  /** Charges until `millis` have passed, and answers charges a second. */
  const charge = async (clients: number, millis: number): Promise<number> => {
    let done = 0
    const began = performance.now()
    const client = async () => {
      while (performance.now() - began < millis) {
        const account = (Math.random() * accounts) | 0
        const id = `res_01M7YKD46JCP6V${(next++).toString(36).padStart(12, "0")}`
        await submit(account, "reserve", id)
        await submit(account, "settle", id)
        done++
      }
    }
    await Promise.all(Array.from({ length: clients }, client))
    return (done / (performance.now() - began)) * 1000
  }

  return { charge, close: () => db.close() }
}
