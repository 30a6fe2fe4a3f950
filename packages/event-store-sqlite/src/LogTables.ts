/**
 * The tables of the event log.
 *
 * `events` has one row for each event, in the order of the log, and no index. `stream_index` tells where the events of each stream are. It
 * is written a few thousand events at a time: an index that each append writes to costs as much as the events themselves, since the
 * events of one commit belong to many streams, and so to many pages of the index. `stream_index_end` is the last event in the index; each
 * process keeps the places of the later ones in memory. See {@link file://./StreamIndex.ts}.
 */
import type { Schema } from "./Migrations.ts"

const INDEX = `stream_index(
      stream INTEGER NOT NULL, revision INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY(stream, revision)) STRICT, WITHOUT ROWID`
const END = "stream_index_end(position INTEGER NOT NULL) STRICT"
const FILL = `INSERT INTO stream_index SELECT stream, revision, position FROM events ORDER BY stream, revision;
    INSERT INTO stream_index_end SELECT coalesce(max(position), 0) FROM events`

export const SCHEMA: Schema = {
  name: "an event log",
  applicationId: 0x4d_69_6c_45,
  migrations: [
    `CREATE TABLE streams(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE events(
      position INTEGER PRIMARY KEY, stream INTEGER NOT NULL, revision INTEGER NOT NULL,
      id TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL, metadata TEXT NOT NULL,
      UNIQUE(revision, stream)) STRICT;
    CREATE TABLE snapshots(name TEXT PRIMARY KEY, revision INTEGER NOT NULL, data TEXT NOT NULL) STRICT;
    CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
    CREATE TRIGGER events_are_never_removed BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
    CREATE TRIGGER streams_are_never_changed BEFORE UPDATE ON streams BEGIN SELECT RAISE(ABORT, 'streams are never changed'); END;
    CREATE TRIGGER streams_are_never_removed BEFORE DELETE ON streams BEGIN SELECT RAISE(ABORT, 'streams are never removed'); END`,

    // Builds the stream index from the events, then drops the unique key of `events`. SQLite drops no key of a table, but it drops an
    // index: an edit of the schema, the same in meaning, makes an index of the key. No page of an event is written.
    `CREATE TABLE ${INDEX};
    CREATE TABLE ${END};
    ${FILL};
    CREATE TRIGGER stream_index_is_never_changed BEFORE UPDATE ON stream_index
      BEGIN SELECT RAISE(ABORT, 'entries of the stream index are never changed'); END;
    CREATE TRIGGER stream_index_is_never_removed BEFORE DELETE ON stream_index
      BEGIN SELECT RAISE(ABORT, 'entries of the stream index are never removed'); END;
    PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET sql = 'CREATE TABLE events(
      position INTEGER PRIMARY KEY, stream INTEGER NOT NULL, revision INTEGER NOT NULL,
      id TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL, metadata TEXT NOT NULL) STRICT'
    WHERE type = 'table' AND name = 'events';
    UPDATE sqlite_schema SET name = 'events_by_revision', sql = 'CREATE UNIQUE INDEX events_by_revision ON events(revision, stream)'
    WHERE type = 'index' AND tbl_name = 'events';
    PRAGMA writable_schema = RESET;
    DROP INDEX events_by_revision`
  ],
  standIns: { 1: `CREATE TEMP TABLE ${INDEX}; CREATE TEMP TABLE ${END}; ${FILL}` }
}

// fullfsync: on macOS a plain fsync does not reach the disk; elsewhere it has no effect. The page cache is small (4 MiB), because SQLite
// walks through all of it whenever a commit has to renumber pages. Nearly every page of the write-ahead log is copied at a checkpoint, so a
// checkpoint after 16 MiB keeps the pause short
export const PRAGMAS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
  PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY`
