/** Logs as the release before wrote them: version 1 of the schema, in its own SQL. */
import type { StreamName } from "@millrace/event-sourcing"
import Database from "better-sqlite3"

export interface OldEvent {
  readonly stream: StreamName.StreamName
  readonly id: string
  readonly type: string
  readonly data: string
  readonly metadata: string
  /** How far it is after the event before it. */
  readonly step: number
}

const VERSION_1 = `PRAGMA journal_mode = WAL;
  CREATE TABLE streams(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE events(
      position INTEGER PRIMARY KEY, stream INTEGER NOT NULL, revision INTEGER NOT NULL,
      id TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL, metadata TEXT NOT NULL,
      UNIQUE(revision, stream)) STRICT;
    CREATE TABLE snapshots(name TEXT PRIMARY KEY, revision INTEGER NOT NULL, data TEXT NOT NULL) STRICT;
    CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
    CREATE TRIGGER events_are_never_removed BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
    CREATE TRIGGER streams_are_never_changed BEFORE UPDATE ON streams BEGIN SELECT RAISE(ABORT, 'streams are never changed'); END;
    CREATE TRIGGER streams_are_never_removed BEFORE DELETE ON streams BEGIN SELECT RAISE(ABORT, 'streams are never removed'); END;
  PRAGMA application_id = ${0x4d_69_6c_45}; PRAGMA user_version = 1`

export const writeOldLog = (filename: string, events: Iterable<OldEvent>): void => {
  const db = new Database(filename)
  db.exec(VERSION_1)
  db.exec("BEGIN")
  const addStream = db.prepare("INSERT INTO streams(name) VALUES (?)")
  const add = db.prepare("INSERT INTO events(position, stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)")
  const streams = new Map<string, { readonly number: number; revision: number }>()
  let position = 0
  for (const { stream, id, type, data, metadata, step } of events) {
    let there = streams.get(stream)
    if (there === undefined) {
      there = { number: Number(addStream.run(stream).lastInsertRowid), revision: -1 }
      streams.set(stream, there)
    }
    position += step
    add.run(position, there.number, ++there.revision, id, type, data, metadata)
  }
  db.prepare("INSERT INTO snapshots VALUES ('snapshot.v1-one', 3, '{}')").run()
  db.exec("COMMIT")
  db.close()
}

/** Everything that a migration must keep, byte for byte, as any SQLite tool shows it. */
export const contentOf = (filename: string) => {
  const db = new Database(filename)
  try {
    const all = (sql: string) => db.prepare<[], Readonly<Record<string, unknown>>>(sql).all()
    const texts = ["id", "type", "data", "metadata"].map((column) => `${column}, typeof(${column}), hex(${column})`)
    return {
      events: all("SELECT * FROM events ORDER BY position"),
      bytes: all(`SELECT ${texts} FROM events ORDER BY position`),
      streams: all("SELECT * FROM streams ORDER BY id"),
      snapshots: all("SELECT * FROM snapshots")
    }
  } finally {
    db.close()
  }
}

/** The version of the schema, and what SQLite finds wrong. */
export const stateOf = (filename: string) => {
  const db = new Database(filename)
  try {
    const ask = (what: string) => db.prepare<[], unknown>(`PRAGMA ${what}`).pluck().get()
    return {
      version: ask("user_version"),
      problems: ask("integrity_check"),
      schema: db.prepare<[], unknown>("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").all()
    }
  } finally {
    db.close()
  }
}
