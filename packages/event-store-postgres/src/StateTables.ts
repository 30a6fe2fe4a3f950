/**
 * The table of the state, the one function that writes to it, and one that reads from it. The writing function holds a lock until the commit, so versions grow in the order
 * in which writes become visible. Versions serve as fencing tokens.
 */
import type { Tables } from "./Migrations.ts"
import { GUARD, PLANNED_ONCE, PLANNING, WRITING } from "./WritingFunctions.ts"

export const STATE: Tables = {
  name: "state",
  migrations: [
    (schema) => `
CREATE TABLE ${schema}.entries(
  space text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL, expires_at bigint, value bytea NOT NULL,
  PRIMARY KEY (space, key));
CREATE INDEX entries_by_expiry ON ${schema}.entries(expires_at) WHERE expires_at IS NOT NULL;
CREATE SEQUENCE ${schema}.versions;

-- Writes, each of them whole or not at all. Those of a round touch different keys, so a round is done at once; each round finds what
-- those before it left. \`rounds\` tells how many writes belong to each, \`sizes\` how many changes, \`owners\` the write of each change.
-- Of several changes of one key in a write, the last is \`final\`. An expected version of -1 is none, one that is null is any.
-- Answers the version of each write, or null, and then the place of its first change that was not as expected.
CREATE FUNCTION ${schema}.write_state(
  now bigint, purges integer, rounds integer[], sizes integer[],
  owners integer[], spaces text[], keys text[], finals boolean[], expected bigint[], expiries bigint[], puts boolean[], vals bytea[],
  OUT versions bigint[], OUT conflicts integer[])
LANGUAGE plpgsql ${PLANNING} ${WRITING} AS $$
DECLARE
  l integer;
  h integer := 0;
  first integer;
  last integer := 0;
  owner integer;
  place integer;
BEGIN${GUARD}
  PERFORM pg_advisory_xact_lock(hashtextextended('millrace state ${schema}', 0));
  versions := array_fill(NULL::bigint, ARRAY[owners[cardinality(owners)]]);
  conflicts := array_fill(NULL::integer, ARRAY[owners[cardinality(owners)]]);
  FOR r IN 1..cardinality(rounds) LOOP
    first := last + 1;
    last := last + rounds[r];
    l := h + 1;
    h := h + sizes[r];
    FOR owner, place IN
      SELECT c.owner, min(c.n) + l - 1
      FROM unnest(owners[l:h], spaces[l:h], keys[l:h], expected[l:h]) WITH ORDINALITY c(owner, space, key, expected, n)
      LEFT JOIN ${schema}.entries e ON e.space = c.space AND e.key = c.key AND (e.expires_at IS NULL OR e.expires_at > now)
      WHERE c.expected IS NOT NULL AND c.expected <> coalesce(e.version, -1)
      GROUP BY c.owner
    LOOP
      conflicts[owner] := place;
    END LOOP;
    FOR w IN first..last LOOP
      IF conflicts[w] IS NULL THEN
        versions[w] := nextval('${schema}.versions');
      END IF;
    END LOOP;
    DELETE FROM ${schema}.entries e
      USING unnest(owners[l:h], spaces[l:h], keys[l:h], finals[l:h], puts[l:h]) c(owner, space, key, is_final, is_put)
      WHERE e.space = c.space AND e.key = c.key AND c.is_final AND NOT c.is_put AND versions[c.owner] IS NOT NULL;
    INSERT INTO ${schema}.entries AS e(space, key, version, expires_at, value)
      SELECT c.space, c.key, versions[c.owner], c.expires_at, c.value
      FROM unnest(owners[l:h], spaces[l:h], keys[l:h], finals[l:h], puts[l:h], expiries[l:h], vals[l:h])
        c(owner, space, key, is_final, is_put, expires_at, value)
      WHERE c.is_final AND c.is_put AND versions[c.owner] IS NOT NULL
      ON CONFLICT (space, key) DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at, value = excluded.value;
  END LOOP;
  IF purges > 0 THEN
    DELETE FROM ${schema}.entries WHERE (space, key) IN (
      SELECT e.space, e.key FROM ${schema}.entries e WHERE e.expires_at <= now ORDER BY e.expires_at LIMIT purges);
  END IF;
END $$;
`,
    (schema) => `
ALTER FUNCTION ${schema}.write_state ${PLANNED_ONCE};

-- The entries of some names that have not expired, each with the place of its name
CREATE FUNCTION ${schema}.get_entries(spaces text[], keys text[], now bigint)
RETURNS TABLE(i bigint, key text, value bytea, version bigint, expires_at bigint)
LANGUAGE plpgsql STABLE ${PLANNING} ${PLANNED_ONCE} AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT a.i, e.key, e.value, e.version, e.expires_at FROM unnest(spaces, keys) WITH ORDINALITY a(space, key, i)
    JOIN ${schema}.entries e ON e.space = a.space AND e.key = a.key WHERE e.expires_at IS NULL OR e.expires_at > now;
END $$;
`
  ]
}
