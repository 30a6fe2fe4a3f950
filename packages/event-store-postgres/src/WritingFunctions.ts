/** SQL that the database functions share. It is part of migrations, so it never changes once released. */

/** Forces nested loops over indexes, because the plan may have been made when the tables were empty. */
export const PLANNING = "SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off"

/**
 * Plans each statement of a function once for a connection. With the indexes forced, no plan depends on its parameters, but without this
 * the server would make a new one for each small call, which costs more than the call.
 */
export const PLANNED_ONCE = "SET plan_cache_mode = force_generic_plan"

/** How long a writer waits for the lock, and the memory for its parameters. */
export const WRITING = "SET lock_timeout = '5s' SET work_mem = '32MB'"

/** Refuses settings that may have changed since the store was opened. */
export const GUARD = `
  IF current_setting('fsync') = 'off' THEN
    RAISE EXCEPTION 'fsync is off: what was acknowledged would be lost with the power; set it on' USING ERRCODE = 'MR001';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'transactions are %: ALTER ROLE … SET default_transaction_isolation = ''read committed''',
      current_setting('transaction_isolation') USING ERRCODE = 'MR001';
  END IF;`

/** Takes the lock of the log, which the transaction holds until it is visible. */
export const LOCKED = (schema: string) => `PERFORM pg_advisory_xact_lock(hashtextextended('millrace log ${schema}', 0));`

/** The revision of the last event of a stream, given its number. */
export const LAST = (schema: string, stream: string) =>
  `(SELECT e.revision FROM ${schema}.events e WHERE e.stream = ${stream} ORDER BY e.revision DESC LIMIT 1)`
