/**
 * The log as tables, the functions that write to it, and those that read pages of it.
 *
 * **The order of the log.** A sequence would assign positions before the commit, but transactions become visible in the order of their
 * commits: a reader that has seen position 7 would miss a 6 that commits later. So `append` takes one lock before it reads the last
 * position, and holds it until its transaction is visible (PostgreSQL releases locks after that). Positions have no gaps and follow the
 * order of commits, and a reader that sees one event sees all events before it. Writers take turns for the length of one function call.
 * No statement of a client runs between the lock and the commit, so a client that stops cannot hold the lock. No writer waits for other
 * transactions of the database. If the lock is held longer (by a manual call of `append` in an open transaction), a writer gives up after
 * five seconds with nothing written.
 *
 * **No row is ever updated**, not even a counter: the last position and each stream's last revision are the ends of an index. So there
 * is nothing to vacuum. A long transaction elsewhere costs nothing, whereas it would keep every old version of a counter alive.
 */
import { appendConditional } from "./AppendFunction.ts"
import type { Tables } from "./Migrations.ts"
import { GUARD, LAST, LOCKED, PLANNED_ONCE, PLANNING, WRITING } from "./WritingFunctions.ts"

const tables = (schema: string) => `
CREATE TABLE ${schema}.streams(
  id bigint PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE);
CREATE TABLE ${schema}.events(
  position bigint PRIMARY KEY, stream bigint NOT NULL, revision bigint NOT NULL,
  id uuid NOT NULL, type text NOT NULL, data text NOT NULL, metadata text NOT NULL,
  CONSTRAINT one_event_a_revision UNIQUE (stream, revision));
CREATE TABLE ${schema}.snapshots(
  name text COLLATE "C" PRIMARY KEY, revision bigint NOT NULL, data text NOT NULL);

CREATE FUNCTION ${schema}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% are never changed or removed', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON ${schema}.events
  FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.refuse_change();
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON ${schema}.streams
  FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.refuse_change();
ALTER TABLE ${schema}.events ENABLE ALWAYS TRIGGER never_changed;
ALTER TABLE ${schema}.streams ENABLE ALWAYS TRIGGER never_changed;

`

/** The versions of `append` differ in how they begin, in their settings, and in how they look for an append that was written before. */
interface AppendVersion {
  readonly create: string
  readonly settings: string
  readonly written: string
}

const append = (
  schema: string,
  { create, settings, written }: AppendVersion
) => `-- Appends, each for itself: all of one or none of it. The first of a stream in a call leads; others of it come after it.
-- Answers the last position before, and of each that was not written now: its place in the call, where its stream ends, and, if it
-- was written before, the position of its last event.
${create} FUNCTION ${schema}.append(
  names text[], expected bigint[], leads boolean[], counts integer[],
  owners integer[], ids uuid[], types text[], datas text[], metadatas text[],
  OUT before bigint, OUT refused integer[], OUT actual bigint[], OUT there bigint[])
LANGUAGE plpgsql ${PLANNING} ${WRITING}${settings} AS $$
DECLARE
  numbers bigint[];
  heads bigint[];
  begun boolean[];
  taken boolean[];
  shifts bigint[];
  firsts bigint[];
  starts integer[];
  newest bigint;
  written integer := 0;
  seen integer := 0;
BEGIN${GUARD}
  ${LOCKED(schema)}
  -- Each statement from here on sees all that was committed under the lock
  SELECT coalesce(max(e.position), 0) INTO before FROM ${schema}.events e;
  SELECT array_agg(coalesce(s.id, 0) ORDER BY a.i), array_agg(coalesce(${LAST(schema, "s.id")}, -1) ORDER BY a.i),
      array_agg(false), array_agg(false), array_agg(0::bigint), array_agg(0::bigint), array_agg(0)
    INTO numbers, heads, begun, taken, shifts, firsts, starts
    FROM unnest(names) WITH ORDINALITY a(name, i) LEFT JOIN ${schema}.streams s ON s.name = a.name;
  refused := '{}';
  FOR i IN 1..cardinality(expected) LOOP
    starts[i] := seen;
    IF leads[i] AND heads[i] = expected[i] THEN
      IF numbers[i] = 0 THEN
        IF newest IS NULL THEN
          SELECT coalesce(max(s.id), 0) INTO newest FROM ${schema}.streams s;
        END IF;
        newest := newest + 1;
        numbers[i] := newest;
        begun[i] := true;
      END IF;
      taken[i] := true;
      shifts[i] := before + written - seen;
      firsts[i] := expected[i] - seen;
      written := written + counts[i];
    ELSE
      refused := refused || i;
    END IF;
    seen := seen + counts[i];
  END LOOP;
  IF newest IS NOT NULL THEN
    INSERT INTO ${schema}.streams(id, name)
      SELECT a.number, a.name FROM unnest(numbers, names, begun) a(number, name, is_begun) WHERE a.is_begun;
  END IF;
  IF written > 0 THEN
    INSERT INTO ${schema}.events(position, stream, revision, id, type, data, metadata)
      SELECT shifts[x.owner] + x.n, numbers[x.owner], firsts[x.owner] + x.n, x.id, x.type, x.data, x.metadata
      FROM unnest(owners, ids, types, datas, metadatas) WITH ORDINALITY x(owner, id, type, data, metadata, n)
      WHERE taken[x.owner];
  END IF;
${refused(schema, written)}END $$;

`

const FIRST: AppendVersion = { create: "CREATE", settings: "", written: "e.revision = expected[r.i] + w.n" }

/**
 * Finds the events of a refused append by a range of revisions. Without the range the server may read the whole stream for them, because it
 * does not know how many events a stream has.
 */
const BOUNDED: AppendVersion = {
  create: "CREATE OR REPLACE",
  settings: ` ${PLANNED_ONCE}`,
  written: "e.revision > expected[r.i] AND e.revision <= expected[r.i] + counts[r.i] AND e.revision = expected[r.i] + w.n"
}

/** The last part of `append`: the results of the appends that were not written. `written`: where the events of one would be. */
const refused = (schema: string, written: string) => `  IF cardinality(refused) > 0 THEN
    SELECT array_agg(coalesce(${LAST(schema, "s.id")}, -1) ORDER BY r.k), array_agg(m.last ORDER BY r.k)
      INTO actual, there
      FROM unnest(refused) WITH ORDINALITY r(i, k)
      LEFT JOIN ${schema}.streams s ON s.name = names[r.i]
      LEFT JOIN LATERAL (
        SELECT CASE WHEN count(*) = counts[r.i] THEN max(e.position) END AS last
        FROM unnest(ids[starts[r.i] + 1 : starts[r.i] + counts[r.i]]) WITH ORDINALITY w(id, n)
        JOIN ${schema}.events e ON e.stream = s.id AND ${written} AND e.id = w.id) m ON true;
    IF written = 0 AND cardinality(array_remove(there, NULL)) > 0 THEN
      -- They may be visible without being on the standby yet, if somebody ended the wait for it. This transaction waits for it anew, but
      -- only if it has written something
      PERFORM pg_logical_emit_message(true, 'millrace', '');
    END IF;
  END IF;
`

const tails = (
  schema: string
) => `-- Where streams end; -1 for one that does not exist. A standby may be behind, so it only answers those who know
CREATE FUNCTION ${schema}.tails(names text[], anywhere boolean, OUT revisions bigint[])
LANGUAGE plpgsql STABLE ${PLANNING} AS $$
BEGIN
  IF pg_is_in_recovery() AND NOT anywhere THEN
    RAISE EXCEPTION 'a standby may be behind' USING ERRCODE = 'MR002';
  END IF;
  SELECT array_agg(coalesce(${LAST(schema, "s.id")}, -1) ORDER BY a.i) INTO revisions
    FROM unnest(names) WITH ORDINALITY a(name, i) LEFT JOIN ${schema}.streams s ON s.name = a.name;
END $$;
`

/** Selects a page of events of `from` in the order of `by`: at most `most` of them, and no further one after `bytes`, but at least one. */
const page = (from: string, by: string) => `
  SELECT q.stream, q.revision, q.place, q.id, q.type, q.data, q.metadata, q.total FROM (
    SELECT p.*, sum(octet_length(p.data) + octet_length(p.metadata)) OVER (ORDER BY p.${by} ROWS UNBOUNDED PRECEDING) AS total FROM (
      SELECT s.name AS stream, e.revision, e.position AS place, e.id, e.type, e.data, e.metadata ${from} LIMIT most) p) q
    WHERE q.total - octet_length(q.data) - octet_length(q.metadata) < bytes ORDER BY q.${by};`

const ofStream = (schema: string, bound: string, order: string) =>
  `FROM ${schema}.streams s JOIN ${schema}.events e ON e.stream = s.id WHERE s.name = wanted AND e.revision ${bound} first ORDER BY e.${order}`

/** `total`: the bytes of the page up to and including the event. */
const reading = (schema: string) => {
  const pages = `
RETURNS TABLE(stream text, revision bigint, place bigint, id uuid, type text, data text, metadata text, total bigint)
LANGUAGE plpgsql STABLE ${PLANNING} ${PLANNED_ONCE} AS $$
#variable_conflict use_column
BEGIN`
  return `-- A page of a stream from a revision on
CREATE FUNCTION ${schema}.read_stream(wanted text, forwards boolean, first bigint, most integer, bytes integer)${pages}
  IF forwards THEN
    RETURN QUERY ${page(ofStream(schema, ">=", "revision"), "revision")}
  ELSE
    RETURN QUERY ${page(ofStream(schema, "<=", "revision DESC"), "revision DESC")}
  END IF;
END $$;
-- A page of the log after a position
CREATE FUNCTION ${schema}.read_log(after bigint, most integer, bytes integer)${pages}
  RETURN QUERY ${page(`FROM ${schema}.events e JOIN ${schema}.streams s ON s.id = e.stream WHERE e.position > after ORDER BY e.position`, "place")}
END $$;
`
}

/** Functions keep their parameters, so hosts of the release before, which run until they are replaced, call them as before. */
const planOnce = (schema: string) => `ALTER FUNCTION ${schema}.append ${PLANNED_ONCE};
ALTER FUNCTION ${schema}.tails ${PLANNED_ONCE};
`

/** As `append`. After its row it also answers the events that refused appends did not know, if they are few. */
const appendTelling = (schema: string) => `
-- The newer events of appends that were refused, for as many appends as need at most \`most\` events and \`bytes\`. The limit keeps the
-- range of revisions inside the search of the index
CREATE FUNCTION ${schema}.newer_events(
  names text[], expected bigint[], refused integer[], actual bigint[], there bigint[], most integer, bytes integer)
RETURNS TABLE(conflict integer, revision bigint, place bigint, id uuid, type text, data text, metadata text)
LANGUAGE plpgsql ${PLANNING} ${PLANNED_ONCE} AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT q.i, q.revision, q.position, q.id, q.type, q.data, q.metadata FROM (
    SELECT r.i, e.revision, e.position, e.id, e.type, e.data, e.metadata,
      sum(octet_length(e.data) + octet_length(e.metadata)) OVER (ORDER BY r.k RANGE UNBOUNDED PRECEDING) AS total
    FROM (
      SELECT a.i, a.k, a.last, sum(a.last - expected[a.i]) OVER (ORDER BY a.k) AS events
      FROM unnest(refused, actual, there) WITH ORDINALITY a(i, last, place, k)
      WHERE a.place IS NULL AND a.last > expected[a.i]) r
    JOIN ${schema}.streams s ON s.name = names[r.i]
    JOIN LATERAL (
      SELECT n.* FROM ${schema}.events n WHERE n.stream = s.id AND n.revision > expected[r.i] AND n.revision <= r.last
      ORDER BY n.revision LIMIT most) e ON true
    WHERE r.events <= most) q
  WHERE q.total <= bytes ORDER BY q.i, q.revision;
END $$;

CREATE FUNCTION ${schema}.append_2(
  names text[], expected bigint[], leads boolean[], counts integer[],
  owners integer[], ids uuid[], types text[], datas text[], metadatas text[], most integer, bytes integer)
RETURNS TABLE(before bigint, refused integer[], actual bigint[], there bigint[],
  conflict integer, revision bigint, place bigint, id uuid, type text, data text, metadata text)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT a.before, a.refused, a.actual, a.there INTO before, refused, actual, there
    FROM ${schema}.append(names, expected, leads, counts, owners, ids, types, datas, metadatas) a;
  RETURN NEXT;
  IF cardinality(refused) > 0 THEN
    RETURN QUERY SELECT NULL::bigint, NULL::integer[], NULL::bigint[], NULL::bigint[],
        n.conflict, n.revision, n.place, n.id, n.type, n.data, n.metadata
      FROM ${schema}.newer_events(names, expected, refused, actual, there, most, bytes) n;
  END IF;
END $$;
`

/** Reads pages of the log with the events of some types only. */
const readingSelected = (schema: string) => `
-- The events of these types (of all, if it is NULL) among the next ones after a position: among at most \`most\`, and no further one after
-- \`bytes\`, but at least one. The last row has no event, but the last position of the log
CREATE FUNCTION ${schema}.read_log_2(after bigint, most integer, bytes integer, wanted text[])
RETURNS TABLE(stream text, revision bigint, place bigint, id uuid, type text, data text, metadata text, total bigint)
LANGUAGE plpgsql STABLE ${PLANNING} ${PLANNED_ONCE} AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY ${page(
    `FROM ${schema}.events e JOIN ${schema}.streams s ON s.id = e.stream
      WHERE e.position > after AND e.position <= after + most AND (wanted IS NULL OR e.type = ANY (wanted)) ORDER BY e.position`,
    "place"
  )}
  RETURN QUERY SELECT NULL::text, NULL::bigint, coalesce(max(e.position), 0), NULL::uuid, NULL::text, NULL::text, NULL::text, NULL::bigint
    FROM ${schema}.events e;
END $$;
`

export const EVENTS: Tables = {
  name: "events",
  migrations: [
    (schema) => tables(schema) + append(schema, FIRST) + tails(schema),
    (schema) => planOnce(schema) + reading(schema),
    (schema) => append(schema, BOUNDED) + appendTelling(schema) + readingSelected(schema),
    appendConditional
  ]
}
