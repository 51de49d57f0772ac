-- Journals in parts, by the numbers of their runs: a part whose runs are over is dropped, which costs the same whatever it has
-- (executor/store/postgres/days.py; docs/decisions/0026-parts-of-journals.md). What was there before is the first part, as it is.
ALTER INDEX batches_pkey RENAME TO batches_first_pkey;
ALTER TABLE batches RENAME TO batches_first;
CREATE TABLE batches (LIKE batches_first INCLUDING STORAGE, PRIMARY KEY (n, seq)) PARTITION BY RANGE (n);
ALTER TABLE batches ATTACH PARTITION batches_first FOR VALUES FROM (0) TO (1099511627776);
-- Of runs that outlive their part: they get the same number, negative.
CREATE TABLE batches_moved PARTITION OF batches FOR VALUES FROM (MINVALUE) TO (0);

-- The number of a run. A stable function is evaluated before a statement begins, and then only the part of this run is opened; with
-- a subselect in its place each part is.
CREATE FUNCTION number_of(run text) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN (SELECT n FROM run_details WHERE id = run);
