/**
 * The database function that writes to the log, as this release calls it. It keeps the order of the log and decides as those do that hosts
 * of earlier releases call (see `EventTables.ts`), and it checks conditions on other streams.
 */
import { GUARD, LAST, LOCKED, PLANNED_ONCE, PLANNING, WRITING } from "./WritingFunctions.ts"

const numbersOf = (schema: string) =>
  `ARRAY(SELECT s.id FROM unnest(names) WITH ORDINALITY a(name, i) LEFT JOIN ${schema}.streams s ON s.name = a.name ORDER BY a.i)`

export const appendConditional = (schema: string) => `
-- Appends, each for itself: all of one or none of it. The first of a stream in a call leads; others of it come after it. The events of all
-- appends follow each other, with the revisions that they have if they are written; those of an append begin after \`starts\` events.
-- If a stream of \`conditions\` does not end at the revision that is required, nothing is appended, and \`ends\` tells where they end.
-- Answers the last position before, and of each append that was not written now: its place in the call, where its stream ends, and, if it
-- was written before, the position of its last event. Then the events that refused appends did not know, if they are few
CREATE FUNCTION ${schema}.append_3(
  names text[], expected bigint[], leads boolean[], counts integer[], starts integer[],
  owners integer[], revisions bigint[], ids uuid[], types text[], datas text[], metadatas text[],
  conditions text[], required bigint[], most integer, bytes integer)
RETURNS TABLE(before bigint, refused integer[], actual bigint[], there bigint[], ends bigint[],
  conflict integer, revision bigint, place bigint, id uuid, type text, data text, metadata text)
LANGUAGE plpgsql ${PLANNING} ${WRITING} ${PLANNED_ONCE} AS $$
DECLARE
  numbers bigint[];
  taken boolean[];
BEGIN${GUARD}
  ${LOCKED(schema)}
  -- Each statement from here on sees all that was committed under the lock
  IF cardinality(conditions) > 0 THEN
    ends := ARRAY(SELECT coalesce(${LAST(schema, "s.id")}, -1)
      FROM unnest(conditions) WITH ORDINALITY c(name, i) LEFT JOIN ${schema}.streams s ON s.name = c.name ORDER BY c.i);
    IF ends <> required THEN
      RETURN NEXT;
      RETURN;
    END IF;
    ends := NULL;
  END IF;
  before := coalesce((SELECT max(e.position) FROM ${schema}.events e), 0);
  numbers := ${numbersOf(schema)};
  taken := ARRAY(SELECT a.leads AND coalesce(${LAST(schema, "a.number")}, -1) = a.expected
    FROM unnest(numbers, expected, leads) WITH ORDINALITY a(number, expected, leads, i) ORDER BY a.i);
  IF array_position(numbers, NULL) IS NOT NULL THEN
    INSERT INTO ${schema}.streams(id, name)
      SELECT (SELECT coalesce(max(s.id), 0) FROM ${schema}.streams s) + row_number() OVER (ORDER BY a.i), a.name
      FROM unnest(names, numbers, taken) WITH ORDINALITY a(name, number, is_taken, i) WHERE a.is_taken AND a.number IS NULL;
    numbers := ${numbersOf(schema)};
  END IF;
  INSERT INTO ${schema}.events(position, stream, revision, id, type, data, metadata)
    SELECT before + row_number() OVER (ORDER BY x.n), numbers[x.owner], x.revision, x.id, x.type, x.data, x.metadata
    FROM unnest(owners, revisions, ids, types, datas, metadatas) WITH ORDINALITY x(owner, revision, id, type, data, metadata, n)
    WHERE taken[x.owner];
  refused := array_positions(taken, false);
  IF cardinality(refused) = 0 THEN
    RETURN NEXT;
    RETURN;
  END IF;
  SELECT array_agg(coalesce(${LAST(schema, "numbers[r.i]")}, -1) ORDER BY r.k), array_agg(m.last ORDER BY r.k) INTO actual, there
    FROM unnest(refused) WITH ORDINALITY r(i, k)
    LEFT JOIN LATERAL (
      SELECT CASE WHEN count(*) = counts[r.i] THEN max(e.position) END AS last
      FROM unnest(ids[starts[r.i] + 1 : starts[r.i] + counts[r.i]]) WITH ORDINALITY w(id, n)
      JOIN ${schema}.events e ON e.stream = numbers[r.i] AND e.revision > expected[r.i] AND e.revision <= expected[r.i] + counts[r.i]
        AND e.revision = expected[r.i] + w.n AND e.id = w.id) m ON true;
  IF NOT (true = ANY (taken)) AND cardinality(array_remove(there, NULL)) > 0 THEN
    -- They may be visible without being on the standby yet, if somebody ended the wait for it. This transaction waits for it anew, but
    -- only if it has written something
    PERFORM pg_logical_emit_message(true, 'millrace', '');
  END IF;
  RETURN NEXT;
  -- The newer events of as many refused appends as need at most \`most\` events and \`bytes\`. The limit keeps the range of revisions inside
  -- the search of the index
  RETURN QUERY SELECT NULL::bigint, NULL::integer[], NULL::bigint[], NULL::bigint[], NULL::bigint[],
      q.i, q.revision, q.position, q.id, q.type, q.data, q.metadata
    FROM (
      SELECT r.i, e.revision, e.position, e.id, e.type, e.data, e.metadata,
        sum(octet_length(e.data) + octet_length(e.metadata)) OVER (ORDER BY r.k RANGE UNBOUNDED PRECEDING) AS total
      FROM (
        SELECT a.i, a.k, a.last, sum(a.last - expected[a.i]) OVER (ORDER BY a.k) AS events
        FROM unnest(refused, actual, there) WITH ORDINALITY a(i, last, place, k)
        WHERE a.place IS NULL AND a.last > expected[a.i]) r
      JOIN LATERAL (
        SELECT n.* FROM ${schema}.events n WHERE n.stream = numbers[r.i] AND n.revision > expected[r.i] AND n.revision <= r.last
        ORDER BY n.revision LIMIT most) e ON true
      WHERE r.events <= most) q
    WHERE q.total <= bytes ORDER BY q.i, q.revision;
END $$;
`
