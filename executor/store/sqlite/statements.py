"""The SQL of the SQLite store: one constant per statement, each named after what it does. Values are parameters only.

`RUN`, `EVENT`, `WAIT`, `SIGNAL`, `DRAFT` list the columns in the order of the fields of RunRow, Record, WaitRow,
SignalRow, DraftRow, so that a row becomes a struct by position. `OPEN` and `CLAIMABLE_AT` must be, letter by letter,
what the index `runs_claimable` says, and `ENDED` what `runs_ended` says: else SQLite does not use them.
"""

# ruff: noqa: S608  (the pieces put together here are constants of this file, never values)

RUN = (
    "id, workflow, version, plan_hash, status, input, output, error, seq, epoch, lease_owner, lease_until_ms,"
    " next_run_at_ms, idempotency_key, request_hash, parent_run_id, parent_key, created_at_ms,"
    " started_at_ms, finished_at_ms, stalls, document_hash, draft_id, draft_rev, root_id"
)
EVENT = "seq, at_ms, type, node, path, attempt, data, output"
WAIT = (
    "run_id, id, node, path, kind, token_hash, request, schema, status, opened_at_ms, expires_at_ms, on_expire, name,"
    " correlation, response, answered_by, answered_at_ms"
)
SIGNAL = "run_id, seq, name, correlation, payload, dedupe_key, received_at_ms, received_by, consumed_by"
DRAFT_HEAD = "id, name, rev, base_name, base_version, base_rev, created_at_ms, updated_at_ms"
DRAFT = f"{DRAFT_HEAD}, document"

OPEN = "status IN ('queued', 'running', 'waiting')"
ENDED = "status IN ('succeeded', 'failed', 'cancelled')"
CLAIMABLE_AT = "max(next_run_at_ms, coalesce(lease_until_ms, 0))"

# --- plans and documents

PLAN = "SELECT ir FROM plans WHERE hash = ?"
ADD_PLAN = "INSERT INTO plans (hash, ir) VALUES (?, ?) ON CONFLICT DO NOTHING"  # by hash: the same bytes
BLOB = "SELECT bytes FROM blobs WHERE hash = ?"
ADD_BLOB = "INSERT INTO blobs (hash, bytes) VALUES (?, ?) ON CONFLICT DO NOTHING"  # by hash: the same bytes
DOCUMENT = "SELECT document FROM documents WHERE hash = ?"
ADD_DOCUMENT = "INSERT INTO documents (hash, document) VALUES (?, ?) ON CONFLICT DO NOTHING"  # by hash: the same bytes

# --- drafts

DRAFT_BY_ID = f"SELECT {DRAFT} FROM drafts WHERE id = ?"
ADD_DRAFT = f"INSERT INTO drafts ({DRAFT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
REVISE_DRAFT = "UPDATE drafts SET name = ?, rev = ?, updated_at_ms = ?, document = ? WHERE id = ? AND rev = ?"
REBASE_DRAFT = "UPDATE drafts SET base_name = ?, base_version = ?, base_rev = ? WHERE id = ?"
DELETE_DRAFT = "DELETE FROM drafts WHERE id = ?"
DELETE_DRAFT_AT_REV = "DELETE FROM drafts WHERE id = ? AND rev = ?"
# Newest change first: DRAFTS, then perhaps the condition, then DRAFTS_PAGE.
DRAFTS = f"SELECT {DRAFT_HEAD} FROM drafts WHERE true"
DRAFTS_BEFORE = " AND (updated_at_ms, id) < (SELECT updated_at_ms, id FROM drafts WHERE id = ?)"
DRAFTS_PAGE = " ORDER BY updated_at_ms DESC, id DESC LIMIT ?"

# One step into the index `runs_by_draft` for each.
LAST_RUNS_OF_DRAFTS = """
SELECT d.value, r.id, r.version, r.status, r.created_at_ms, r.finished_at_ms
  FROM json_each(?) AS d
  JOIN runs AS r ON r.id = (SELECT id FROM runs INDEXED BY runs_by_draft WHERE draft_id = d.value
                             ORDER BY created_at_ms DESC, id DESC LIMIT 1)"""

# --- runs

LAST_SEQS = "SELECT id, seq FROM runs WHERE id IN (SELECT value FROM json_each(?))"
RUN_BY_ID = f"SELECT {RUN} FROM runs WHERE id = ?"
RUN_BY_IDEMPOTENCY_KEY = f"SELECT {RUN} FROM runs WHERE workflow = ? AND idempotency_key = ?"
ADD_RUN = f"""
INSERT INTO runs ({RUN})
VALUES (:id, :workflow, :version, :plan_hash, 'queued', :input, NULL, NULL, :seq, 0, NULL, NULL, :now,
        :idempotency_key, :request_hash, :parent_run_id, :parent_key, :now, NULL, NULL, 0,
        :document_hash, :draft_id, :draft_rev, :root_id)"""

# A page of runs, newest first: RUNS, then any of the conditions, then RUNS_PAGE.
RUNS = f"SELECT {RUN} FROM runs WHERE true"
RUNS_OF_WORKFLOW = " AND workflow = ?"
RUNS_OF_DRAFT = " AND draft_id = ?"
RUNS_OF_STATUS = " AND status = ?"
RUNS_OF_PARENT = " AND parent_run_id = ?"
RUNS_BEFORE = " AND (created_at_ms, id) < (SELECT created_at_ms, id FROM runs WHERE id = ?)"
RUNS_PAGE = " ORDER BY created_at_ms DESC, id DESC LIMIT ?"
# Their inputs: INPUTS, then any of the conditions, then RUNS_PAGE.
INPUTS = "SELECT input FROM runs WHERE length(input) <= ?"
# By status: COUNT_ENDED, perhaps a condition, AND_OPEN, the same again, BY_STATUS. In two halves, each with its index
# (named, as SQLite would rather read all runs of the workflow); the runs of a draft are few.
COUNT_ENDED = f"SELECT status, count(*) FROM runs INDEXED BY runs_ended WHERE {ENDED}"
AND_OPEN = f" GROUP BY status UNION ALL SELECT status, count(*) FROM runs INDEXED BY runs_claimable WHERE {OPEN}"
COUNT_OF_DRAFT = "SELECT status, count(*) FROM runs INDEXED BY runs_by_draft WHERE draft_id = ?"
BY_STATUS = " GROUP BY status"

# Found and taken in one write transaction, so nobody comes in between.
ORPHANED = f"""parent_run_id IS NOT NULL AND EXISTS (
    WITH RECURSIVE above (id, depth) AS (
        SELECT runs.parent_run_id, 1
        UNION ALL
        SELECT r.parent_run_id, depth + 1 FROM above JOIN runs AS r ON r.id = above.id
         WHERE r.parent_run_id IS NOT NULL AND depth < 100)
    SELECT 1 FROM above JOIN runs AS r ON r.id = above.id WHERE r.cancel_n IS NOT NULL OR r.{ENDED})"""
# How many runs each of these owners holds.
COUNT_HELD = f"""
SELECT lease_owner, count(*) FROM runs
 WHERE {OPEN} AND lease_owner IN (SELECT value FROM json_each(?)) GROUP BY lease_owner"""
OUTPUT_BYTES = """
SELECT (SELECT coalesce(sum(length(output)), 0) FROM events WHERE run_id = ?)
     + (SELECT coalesce(sum(length(bytes)), 0) FROM blob_refs JOIN blobs USING (hash) WHERE run_id = ?)"""
CLAIMABLE = f"SELECT {RUN}, lease_owner, 0, {ORPHANED} FROM runs"
FIND_CLAIMABLE = f"{CLAIMABLE} WHERE {OPEN} AND {CLAIMABLE_AT} <= ? ORDER BY {CLAIMABLE_AT}, id LIMIT ?"
FIND_CLAIMABLE_RUN = f"{CLAIMABLE} WHERE id = ? AND {OPEN} AND {CLAIMABLE_AT} <= ?"
TAKE_LEASE = """
UPDATE runs SET lease_owner = ?, lease_until_ms = ?, epoch = ?, stalls = ?, status = 'running', started_at_ms = ?
 WHERE id = ?"""
RENEW_LEASES = f"""
UPDATE runs SET lease_until_ms = :until
 WHERE id IN (SELECT value FROM json_each(:runs)) AND lease_owner = :owner AND {OPEN} RETURNING id"""
# The promise that an answer is not lost while the owner goes to sleep: only with an empty inbox. A run that is given
# away, because its process ends, is due at once for the next owner.
RELEASE_LEASE = f"""
UPDATE runs SET status = :status, lease_owner = NULL, lease_until_ms = NULL, next_run_at_ms = :next_run_at
 WHERE id = :id AND epoch = :epoch AND seq = :seq AND {OPEN}
   AND (:status = 'running' OR NOT EXISTS (SELECT 1 FROM inbox WHERE run_id = :id))"""
NEXT_CLAIMABLE_AT = f"""
SELECT {CLAIMABLE_AT} FROM runs WHERE {OPEN} AND {CLAIMABLE_AT} IS NOT NULL ORDER BY {CLAIMABLE_AT} LIMIT 1"""

# A lease or a due time that only a clock set back explains: waiting runs keep theirs, it is the workflow's.
_OF_ANOTHER_TIME = f"""
 WHERE {OPEN} AND (lease_until_ms > :latest
       OR (next_run_at_ms > :now AND (status <> 'waiting' OR EXISTS (SELECT 1 FROM inbox WHERE run_id = runs.id))))"""
FIND_OTHER_TIMES = f"""
SELECT count(*), coalesce(max(max(coalesce(lease_until_ms, 0) - :latest,
                                  iif(status <> 'waiting' OR EXISTS (SELECT 1 FROM inbox WHERE run_id = runs.id),
                                      coalesce(next_run_at_ms, 0) - :now, 0))), 0)
  FROM runs{_OF_ANOTHER_TIME}"""
MEND_CLOCK = f"""
UPDATE runs SET next_run_at_ms = min(coalesce(next_run_at_ms, :now), :now),
       lease_owner = iif(lease_until_ms > :latest, NULL, lease_owner),
       lease_until_ms = iif(lease_until_ms > :latest, NULL, lease_until_ms){_OF_ANOTHER_TIME}"""

# --- the journal

# The fence, in two forms. The short one, by far the most frequent, touches no indexed column. No row: fenced.
ADVANCE = f"UPDATE runs SET seq = ?, stalls = 0 WHERE id = ? AND epoch = ? AND seq = ? AND {OPEN}"
ADVANCE_AND_CHANGE = f"""
UPDATE runs SET seq = :seq, stalls = 0, status = coalesce(:status, status),
       output = coalesce(:output, output), error = coalesce(:error, error)
 WHERE id = :id AND epoch = :epoch AND seq = :expected_seq AND {OPEN}"""
ADVANCE_AND_FINISH = f"""
UPDATE runs SET seq = :seq, stalls = 0, status = coalesce(:status, status),
       output = coalesce(:output, output), error = coalesce(:error, error),
       finished_at_ms = :now, lease_owner = NULL, lease_until_ms = NULL, next_run_at_ms = NULL
 WHERE id = :id AND epoch = :epoch AND seq = :expected_seq AND {OPEN}
   AND NOT EXISTS (SELECT 1 FROM inbox AS i WHERE i.run_id = runs.id AND i.n = runs.cancel_n
                      AND i.n NOT IN (SELECT value FROM json_each(:consumed)))"""
IS_CURRENT = f"SELECT 1 FROM runs WHERE id = ? AND epoch = ? AND seq = ? AND {OPEN}"
ADD_EVENT = f"INSERT INTO events (run_id, {EVENT}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

EVENT_BY_SEQ = f"SELECT run_id, {EVENT}, checksum FROM events WHERE run_id = ? AND seq = ?"
EVENTS_AFTER = f"SELECT {EVENT}, checksum FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"

# A page of matching events and, as first row, the count of all matches; one statement, so both see the same moment.
# Between the two halves and at the end of the second come the conditions, then `EVENTS_PAGE`.
COUNT_EVENTS = "SELECT count(*), 0, '', NULL, '', 0, NULL, NULL, NULL FROM events WHERE run_id = ?"
AND_EVENTS = f" UNION ALL SELECT * FROM (SELECT {EVENT}, checksum FROM events WHERE run_id = ?"
EVENTS_OF_NODE = " AND node = ?"
EVENTS_OF_TYPES = " AND type IN (SELECT value FROM json_each(?))"
EVENTS_SINCE = " AND at_ms >= ?"
EVENTS_PAGE = " AND seq > ? ORDER BY seq LIMIT ?)"

# --- waits

ADD_WAIT = f"INSERT INTO waits ({WAIT}) VALUES ({', '.join('?' * 17)})"
CLOSE_WAIT = """
UPDATE waits SET status = ?, response = ?, answered_by = ?, answered_at_ms = ?
 WHERE run_id = ? AND id = ? AND status = 'pending'"""
# A run that has ended waits for nothing.
CANCEL_WAITS = "UPDATE waits SET status = 'cancelled', answered_at_ms = ? WHERE run_id = ? AND status = 'pending'"
WAIT_BY_TOKEN = f"SELECT {WAIT} FROM waits WHERE token_hash = ?"
WAIT_BY_ID = f"SELECT {WAIT} FROM waits WHERE run_id = ? AND id = ?"
CANCEL_WAIT = """
UPDATE waits SET status = 'cancelled', answered_by = ?, answered_at_ms = ?
 WHERE run_id = ? AND id = ? AND status = 'pending'"""
# Oldest first: WAITS, then any of the conditions, then WAITS_PAGE.
WAITS = f"SELECT {WAIT} FROM waits WHERE true"
WAITS_OF_STATUS = " AND status = ?"
WAITS_OF_RUN = " AND run_id = ?"
WAITS_OF_KIND = " AND kind = ?"
WAITS_OF_KEY = " AND rtrim(id, '0123456789') = ? || '!'"  # an id is the node key, `!`, and the attempt
WAITS_OF_WORKFLOW = " AND EXISTS (SELECT 1 FROM runs WHERE runs.id = waits.run_id AND workflow = ?)"
WAITS_BEHIND = (
    " AND (opened_at_ms, run_id, id) > (SELECT opened_at_ms, run_id, id FROM waits WHERE run_id = ? AND id = ?)"
)
WAITS_PAGE = " ORDER BY opened_at_ms, run_id, id LIMIT ?"
# By status: COUNT_WAITS, then any of the conditions but that of the status, then BY_STATUS.
COUNT_WAITS = "SELECT status, count(*) FROM waits WHERE true"

# --- facts and signals

# The next inbox number of an open run, which is due now. A run whose lease is live was due before: nothing changes
# for it, and its owner finds the fact because RELEASE_LEASE looks into the inbox.
WAKE = f"""
UPDATE runs SET inbox_n = inbox_n + 1, next_run_at_ms = min(coalesce(next_run_at_ms, :now), :now)
 WHERE id = :id AND {OPEN} RETURNING inbox_n"""
WAKE_TO_CANCEL = WAKE.replace("inbox_n = inbox_n + 1", "inbox_n = inbox_n + 1, cancel_n = inbox_n + 1")
ADD_FACT = "INSERT INTO inbox (run_id, n, fact) VALUES (?, ?, ?)"
INBOX = "SELECT run_id, n, fact FROM inbox WHERE run_id = ? ORDER BY n"
ANY_FACT = "SELECT EXISTS (SELECT 1 FROM inbox)"
NEWEST_FACT = "SELECT coalesce(max(n), 0) FROM inbox WHERE run_id = ?"
DELETE_FACT = "DELETE FROM inbox WHERE run_id = ? AND n = ?"
# Came in the moment the run ended: nobody takes them any more.
DELETE_FACTS = "DELETE FROM inbox WHERE run_id = ?"

SIGNAL_BY_DEDUPE_KEY = f"SELECT {SIGNAL} FROM signals WHERE run_id = ? AND dedupe_key = ?"
SIGNAL_LAST_SEQ = "SELECT coalesce(max(seq), 0) FROM signals WHERE run_id = ?"
ADD_SIGNAL = f"INSERT INTO signals ({SIGNAL}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
CONSUME_SIGNAL = "UPDATE signals SET consumed_by = ? WHERE run_id = ? AND seq = ?"
SIGNALS_UNCONSUMED = f"SELECT {SIGNAL} FROM signals WHERE run_id = ? AND consumed_by IS NULL ORDER BY seq"
# Signals of a run: SIGNALS, then any of the conditions, then SIGNALS_PAGE.
SIGNALS = f"SELECT {SIGNAL} FROM signals WHERE run_id = ?"
SIGNALS_OF_NAME = " AND name = ?"
SIGNALS_OF_CORRELATION = " AND correlation = ?"
SIGNALS_SINCE = " AND received_at_ms >= ?"
SIGNALS_PAGE = " ORDER BY seq LIMIT ?"

# --- the writer's own row: which of its groups without events was committed last

ADD_WRITER = "INSERT INTO writers (id, last_group) VALUES (?, 0) ON CONFLICT DO NOTHING"
MARK_GROUP = "UPDATE writers SET last_group = ? WHERE id = ?"
LAST_GROUP = "SELECT last_group FROM writers WHERE id = ?"
DELETE_WRITER = "DELETE FROM writers WHERE id = ?"
# Rows of processes that were killed; a thousand starts is more than ever write at once.
FORGET_OLD_WRITERS = "DELETE FROM writers WHERE rowid < (SELECT max(rowid) FROM writers) - 1000"

# --- is it alive?

PING_READ = "SELECT count(*) FROM writers"
PING_WRITE = "UPDATE writers SET last_group = last_group WHERE rowid = (SELECT max(rowid) FROM writers)"
