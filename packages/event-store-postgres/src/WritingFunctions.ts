/** What the functions that write have in common. It is part of migrations, so it is never changed once released. */

/** Nested loops over indexes, whatever the planner believed of tables that were empty when it was first asked. */
export const PLANNING = "SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off"

/** How long a writer waits for another, and room for what it was sent. */
export const WRITING = "SET lock_timeout = '5s' SET work_mem = '32MB'"

/** Refuses settings that may have come after the store was opened. */
export const GUARD = `
  IF current_setting('fsync') = 'off' THEN
    RAISE EXCEPTION 'fsync is off: what was acknowledged would be lost with the power; set it on' USING ERRCODE = 'MR001';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'transactions are %: ALTER ROLE … SET default_transaction_isolation = ''read committed''',
      current_setting('transaction_isolation') USING ERRCODE = 'MR001';
  END IF;`
