// The tables and the one function on PostgreSQL. A change gets the next number, and the function
// its number in its name: old and new processes run side by side during a deploy.

/** The number of the schema below. A process refuses a database with a higher one. */
export const schemaNumber = 1;

/** Creates what is missing. Run under an advisory lock. */
export const createSchema = `
CREATE TABLE IF NOT EXISTS farebox_schema (number int NOT NULL);
INSERT INTO farebox_schema SELECT 0 WHERE NOT EXISTS (SELECT FROM farebox_schema);
CREATE TABLE IF NOT EXISTS farebox_kv (
  k bytea PRIMARY KEY,
  v bytea NOT NULL,
  ver bigint NOT NULL
) WITH (
  -- Most updates find space on the row's own page, and leave the index alone.
  fillfactor = 80,
  -- Short-lived rows gather at the ends of the index: listings must not wade through dead ones.
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 2000,
  autovacuum_analyze_scale_factor = 0.05
);
CREATE SEQUENCE IF NOT EXISTS farebox_version CACHE 1;
`;

// One atomic write, in one round trip. It runs in READ COMMITTED, and locks decide:
//
// - Rows that are checked and changed are locked against everyone, rows that are only checked
//   against writers; both in the order of their keys.
// - A key that must be absent is inserted: another writer of it waits for this one's end. Where it
//   is only checked, the caller deletes it again in the same write.
// - A row that appears between the look and the insert is a unique_violation: the caller tries
//   again, and then sees it.
//
// Nothing is written when a check fails; all keys whose checks failed are returned.
/** The function of schema 1. Each argument is an array; those of a group have the same length. */
export const createWriteFunction = `
CREATE OR REPLACE FUNCTION farebox_write_1(
  lock_k bytea[], lock_ver bigint[], share_k bytea[], share_ver bigint[],
  make_k bytea[], make_v bytea[], change_k bytea[], change_v bytea[],
  put_k bytea[], put_v bytea[], drop_k bytea[],
  OUT version bigint, OUT failed bytea[]
) LANGUAGE plpgsql AS $$
DECLARE
  more bytea[];
BEGIN
  IF cardinality(lock_k) > 0 THEN
    SELECT array_agg(want.k) INTO failed
    FROM unnest(lock_k, lock_ver) AS want(k, ver) LEFT JOIN (
      SELECT kv.k, kv.ver FROM farebox_kv kv
      WHERE kv.k = ANY(lock_k) ORDER BY kv.k FOR NO KEY UPDATE
    ) AS found ON found.k = want.k
    WHERE found.ver IS DISTINCT FROM want.ver;
  END IF;
  IF cardinality(share_k) > 0 THEN
    SELECT array_agg(want.k) INTO more
    FROM unnest(share_k, share_ver) AS want(k, ver) LEFT JOIN (
      SELECT kv.k, kv.ver FROM farebox_kv kv
      WHERE kv.k = ANY(share_k) ORDER BY kv.k FOR SHARE
    ) AS found ON found.k = want.k
    WHERE found.ver IS DISTINCT FROM want.ver;
    failed := failed || more;
  END IF;
  IF cardinality(make_k) > 0 THEN
    SELECT array_agg(kv.k) INTO more FROM farebox_kv kv WHERE kv.k = ANY(make_k);
    failed := failed || more;
  END IF;
  IF failed IS NOT NULL THEN
    RETURN;
  END IF;

  -- With a random part: a standby that took over without the last writes counts them anew, and a
  -- process may still know the lost ones.
  version := nextval('farebox_version') * 1048576 + floor(random() * 1048576)::bigint;
  IF cardinality(change_k) > 0 THEN
    UPDATE farebox_kv kv SET v = want.v, ver = version
    FROM unnest(change_k, change_v) AS want(k, v) WHERE kv.k = want.k;
  END IF;
  IF cardinality(make_k) > 0 THEN
    INSERT INTO farebox_kv
    SELECT want.k, want.v, version FROM unnest(make_k, make_v) AS want(k, v) ORDER BY want.k;
  END IF;
  IF cardinality(put_k) > 0 THEN
    INSERT INTO farebox_kv
    SELECT want.k, want.v, version FROM unnest(put_k, put_v) AS want(k, v) ORDER BY want.k
    ON CONFLICT (k) DO UPDATE SET v = excluded.v, ver = excluded.ver;
  END IF;
  IF cardinality(drop_k) > 0 THEN
    DELETE FROM farebox_kv kv WHERE kv.k = ANY(drop_k);
  END IF;
END $$;
`;

/** Calls the function. */
export const callWrite = "SELECT version, failed FROM " +
  "farebox_write_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/** Reads rows by their keys, in any order. */
export const readRows = "SELECT k, v, ver FROM farebox_kv WHERE k = ANY($1::bytea[])";

/** Lists rows from a key up to before another. */
export const listRows = (order: "ASC" | "DESC") =>
  `SELECT k, v, ver FROM farebox_kv WHERE k >= $1 AND k < $2 ORDER BY k ${order} LIMIT $3::int`;

/**
 * Settings of every session: a call ends before the caller's deadline, and no plan is made for the
 * small table of the first minutes that would be wrong for a large one.
 */
export const sessionOptions = (statementMs: number) =>
  [
    `statement_timeout=${statementMs}`,
    "default_transaction_isolation=read\\ committed",
    "enable_seqscan=off",
    "enable_hashjoin=off",
    "enable_mergejoin=off",
    "jit=off",
  ].map((setting) => `-c ${setting}`).join(" ");
