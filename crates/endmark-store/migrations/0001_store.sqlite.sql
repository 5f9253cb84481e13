-- The tables of the store. The file can be run any number of times, here and in the `sqlite3` shell. Times are UTC.

-- Cut replies: one row each, written when its outcome is known.
CREATE TABLE IF NOT EXISTS partial_completion_log (
  id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, turn_number INTEGER NOT NULL, truncation_index INTEGER,
  initial_chunk_length INTEGER, resume_attempts INTEGER DEFAULT 0,
  final_status TEXT NOT NULL CHECK(final_status IN ('RESOLVED','EXHAUSTED')),
  timestamp TEXT NOT NULL DEFAULT (datetime('now')));

-- The other facts about a cut reply. They have a table of their own, so that others find the log as they know it.
CREATE TABLE IF NOT EXISTS recoveries (
  log_id INTEGER PRIMARY KEY REFERENCES partial_completion_log(id) ON DELETE CASCADE,
  request_id TEXT NOT NULL,
  slot TEXT NOT NULL,
  model TEXT NOT NULL,
  provider TEXT NOT NULL,
  cut_kind TEXT NOT NULL,
  outcome TEXT NOT NULL,
  seam_style TEXT,
  extra_prompt_tokens INTEGER NOT NULL DEFAULT 0,
  extra_output_tokens INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL);

-- Cut replies by request, with what became of them.
CREATE INDEX IF NOT EXISTS recoveries_outcomes ON recoveries(request_id, outcome);

-- The reply as it was received, piece by piece: the first one is the cut reply, the others continue it.
CREATE TABLE IF NOT EXISTS recovery_pieces (
  log_id INTEGER NOT NULL REFERENCES partial_completion_log(id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  strategy TEXT NOT NULL,
  received_bytes INTEGER NOT NULL,
  ending TEXT NOT NULL,
  stop TEXT,
  judged TEXT NOT NULL,
  why TEXT NOT NULL,
  seam_at INTEGER,
  seam_style TEXT,
  dropped_bytes INTEGER NOT NULL DEFAULT 0,
  confidence REAL,
  sha256 TEXT NOT NULL,
  text TEXT,
  PRIMARY KEY (log_id, ordinal));

-- Recoveries whose outcome is not known yet. Each names the process that owns it. If that process is dead, the next start
-- logs the recovery as EXHAUSTED. AUTOINCREMENT: an id is never used twice.
CREATE TABLE IF NOT EXISTS open_recoveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner TEXT NOT NULL,
  request_id TEXT NOT NULL,
  slot TEXT NOT NULL,
  task_id TEXT NOT NULL,
  turn_number INTEGER NOT NULL,
  cut_at INTEGER,
  initial_chunk_length INTEGER NOT NULL,
  model TEXT NOT NULL,
  provider TEXT NOT NULL,
  cut_kind TEXT NOT NULL,
  started_at TEXT NOT NULL DEFAULT (datetime('now')));

-- How an upstream treats a prefill, by model.
CREATE TABLE IF NOT EXISTS capabilities (
  upstream TEXT NOT NULL,
  model TEXT NOT NULL,
  prefill TEXT NOT NULL,
  learned_at TEXT NOT NULL DEFAULT (datetime('now')),
  PRIMARY KEY (upstream, model));

-- One row per upstream call, written when the call is over, or at the next start if the process was killed meanwhile. The key
-- prevents a call from being counted twice. Counts are those that the provider reported, or NULL. The program decides which
-- purposes exist: a list in a CHECK would need a new table for each new purpose. `is_summed` is 1 if the call is in
-- `usage_sums`. A program that inserts rows leaves it at 0, and the gateway adds the call to the sums within seconds.
CREATE TABLE IF NOT EXISTS usage (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  purpose TEXT NOT NULL CHECK (purpose <> ''),
  session TEXT NOT NULL,
  credential TEXT,
  upstream TEXT NOT NULL,
  format TEXT NOT NULL,
  model TEXT NOT NULL,
  answered_model TEXT,
  streamed INTEGER NOT NULL,
  mode TEXT NOT NULL,
  started_at TEXT NOT NULL,
  ended_at TEXT,
  http_status INTEGER,
  ending TEXT NOT NULL,
  stop TEXT,
  verdict TEXT,
  cut_kind TEXT,
  prompt_tokens INTEGER,
  output_tokens INTEGER,
  cached_tokens INTEGER,
  reasoning_tokens INTEGER,
  total_tokens INTEGER,
  sent_bytes INTEGER NOT NULL,
  received_bytes INTEGER,
  first_byte_ms REAL,
  total_ms REAL,
  is_summed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (request_id, call)) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS usage_by_time ON usage(started_at);

-- Calls that no sum contains yet.
CREATE INDEX IF NOT EXISTS usage_unsummed ON usage(started_at) WHERE is_summed = 0;

-- Cut replies, with every value that reports read of them.
CREATE INDEX IF NOT EXISTS usage_cut ON usage(started_at, request_id, call, verdict, purpose, upstream, model, cut_kind, prompt_tokens,
  output_tokens, sent_bytes, received_bytes) WHERE verdict = 'cut';

-- The list of requests, newest first, with every value that it can be filtered by: a filter that few requests match reads no rows.
CREATE INDEX IF NOT EXISTS usage_requests ON usage(started_at, request_id, verdict, upstream, model, credential, session) WHERE call = 1;

CREATE INDEX IF NOT EXISTS usage_sessions ON usage(session, started_at);

-- Sessions whose calls came with one of the gateway's own keys, as those of supervised runs do.
CREATE INDEX IF NOT EXISTS usage_of_keys ON usage(session, credential) WHERE credential >= 'key:' AND credential < 'key;';

-- Tokens that a call wrote to its provider's cache. Tokens kept for an hour (`tokens_1h`, a part of `tokens`) cost more. At most
-- one row per row of `usage`, as in the next two tables.
CREATE TABLE IF NOT EXISTS usage_cache_writes (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  tokens_1h INTEGER NOT NULL,
  PRIMARY KEY (request_id, call)) WITHOUT ROWID;

-- Tokens of calls that their providers did not report, as the gateway estimated them. A call that costs nothing has no row.
CREATE TABLE IF NOT EXISTS usage_estimates (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  prompt INTEGER NOT NULL,
  output INTEGER NOT NULL,
  PRIMARY KEY (request_id, call)) WITHOUT ROWID;

-- Counts with a price of their own, and the tier that served the call. Sums count such a call like any other; a report adds the
-- difference in price.
CREATE TABLE IF NOT EXISTS usage_billing (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  tier TEXT,
  prompt_audio INTEGER NOT NULL,
  cached_audio INTEGER NOT NULL,
  completion_audio INTEGER NOT NULL,
  web_searches INTEGER NOT NULL,
  PRIMARY KEY (request_id, call)) WITHOUT ROWID;

-- Sums of calls. Each summed call is in the row of its day (`grain` 10, the length of `period`) and of its hour (`grain` 13), for
-- each dimension: none, its session, its client's key. The program defines which calls one row of `usage_classes` counts.
CREATE TABLE IF NOT EXISTS usage_classes (
  id INTEGER PRIMARY KEY,
  upstream TEXT NOT NULL,
  purpose TEXT NOT NULL,
  model TEXT NOT NULL,
  answered_model TEXT NOT NULL,
  kinds INTEGER NOT NULL,
  above_tokens INTEGER NOT NULL,
  from_minute INTEGER NOT NULL,
  UNIQUE (upstream, purpose, model, answered_model, kinds, above_tokens, from_minute));

CREATE TABLE IF NOT EXISTS usage_sums (
  grain INTEGER NOT NULL,
  dimension TEXT NOT NULL,
  period TEXT NOT NULL,
  key TEXT NOT NULL,
  class INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  judged INTEGER NOT NULL,
  cut INTEGER NOT NULL,
  without_reply INTEGER NOT NULL,
  interrupted INTEGER NOT NULL,
  unreported INTEGER NOT NULL,
  reported_prompt INTEGER NOT NULL,
  reported_output INTEGER NOT NULL,
  prompt INTEGER NOT NULL,
  plain_prompt INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL,
  completion INTEGER NOT NULL,
  plain_completion INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  PRIMARY KEY (grain, dimension, period, key, class)) WITHOUT ROWID;

-- A deleted call cannot be subtracted from its sums: they do not contain single calls. Its hour is subtracted instead, and the
-- other calls of the hour are summed again.
CREATE TRIGGER IF NOT EXISTS usage_deleted AFTER DELETE ON usage WHEN OLD.is_summed = 1 BEGIN
  UPDATE usage_sums SET calls = usage_sums.calls - h.calls, requests = usage_sums.requests - h.requests,
    judged = usage_sums.judged - h.judged, cut = usage_sums.cut - h.cut, without_reply = usage_sums.without_reply - h.without_reply,
    interrupted = usage_sums.interrupted - h.interrupted, unreported = usage_sums.unreported - h.unreported,
    reported_prompt = usage_sums.reported_prompt - h.reported_prompt,
    reported_output = usage_sums.reported_output - h.reported_output, prompt = usage_sums.prompt - h.prompt,
    plain_prompt = usage_sums.plain_prompt - h.plain_prompt, cached = usage_sums.cached - h.cached,
    cache_write = usage_sums.cache_write - h.cache_write, cache_write_1h = usage_sums.cache_write_1h - h.cache_write_1h,
    completion = usage_sums.completion - h.completion, plain_completion = usage_sums.plain_completion - h.plain_completion,
    reasoning = usage_sums.reasoning - h.reasoning, estimated = usage_sums.estimated - h.estimated
  FROM usage_sums AS h
  WHERE h.grain = 13 AND h.dimension IN ('', 'session', 'key') AND h.period = substr(OLD.started_at, 1, 13)
    AND usage_sums.grain = 10 AND usage_sums.period = substr(OLD.started_at, 1, 10)
    AND usage_sums.dimension = h.dimension AND usage_sums.key = h.key AND usage_sums.class = h.class;
  DELETE FROM usage_sums WHERE grain = 10 AND dimension IN ('', 'session', 'key') AND period = substr(OLD.started_at, 1, 10) AND calls = 0;
  DELETE FROM usage_sums WHERE grain = 13 AND dimension IN ('', 'session', 'key') AND period = substr(OLD.started_at, 1, 13);
  UPDATE usage SET is_summed = 0
    WHERE started_at >= substr(OLD.started_at, 1, 13) AND started_at < substr(OLD.started_at, 1, 13) || ';' AND is_summed = 1;
  DELETE FROM cut_sums WHERE day = substr(OLD.started_at, 1, 10);
END;

-- Sums of cut replies by day and outcome. A day is summed a day after its end, when nearly every outcome is known. If a call of a
-- summed day is deleted, or an outcome is added or deleted, the day's sums are deleted and the day is summed again.
CREATE TABLE IF NOT EXISTS cut_sums (
  day TEXT NOT NULL,
  upstream TEXT NOT NULL,
  model TEXT NOT NULL,
  cut_kind TEXT NOT NULL,
  outcome TEXT NOT NULL,
  replies INTEGER NOT NULL,
  resent_tokens INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  at_own_limit INTEGER NOT NULL,
  PRIMARY KEY (day, upstream, model, cut_kind, outcome)) WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS cut_reply_unsummed AFTER UPDATE OF is_summed ON usage WHEN NEW.is_summed = 0 AND NEW.verdict = 'cut' BEGIN
  DELETE FROM cut_sums WHERE day = substr(NEW.started_at, 1, 10);
END;

CREATE TRIGGER IF NOT EXISTS recovery_added AFTER INSERT ON recoveries BEGIN
  DELETE FROM cut_sums WHERE day IN (SELECT substr(started_at, 1, 10) FROM usage WHERE request_id = NEW.request_id);
END;

CREATE TRIGGER IF NOT EXISTS recovery_deleted AFTER DELETE ON recoveries BEGIN
  DELETE FROM cut_sums WHERE day IN (SELECT substr(started_at, 1, 10) FROM usage WHERE request_id = OLD.request_id);
END;

-- Full values of shortened outputs, in pieces that are compressed one by one, so that a part can be read without the rest.
CREATE TABLE IF NOT EXISTS outputs (
  handle TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  format TEXT,
  bytes INTEGER,
  lines INTEGER,
  keep_days INTEGER NOT NULL,
  created_at TEXT NOT NULL DEFAULT (datetime('now')),
  last_used INTEGER NOT NULL);

CREATE INDEX IF NOT EXISTS outputs_by_use ON outputs(last_used);
CREATE INDEX IF NOT EXISTS outputs_by_owner ON outputs(owner, last_used, handle);

CREATE TABLE IF NOT EXISTS output_pieces (
  handle TEXT NOT NULL REFERENCES outputs(handle) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  first_byte INTEGER NOT NULL,
  first_line INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (handle, ordinal));

-- The session in which an output was shortened first.
CREATE TABLE IF NOT EXISTS session_outputs (
  handle TEXT NOT NULL PRIMARY KEY REFERENCES outputs(handle) ON DELETE CASCADE,
  session TEXT NOT NULL) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS session_outputs_by_session ON session_outputs(session);

-- The bytes of compressed pieces by output, by owner and of all outputs. Triggers keep these sums, whichever program writes or
-- removes a piece. `removed_outputs` lists outputs that were removed to make room.
CREATE TABLE IF NOT EXISTS output_sizes (
  handle TEXT NOT NULL PRIMARY KEY REFERENCES outputs(handle) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  bytes INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS output_owners (
  owner TEXT NOT NULL PRIMARY KEY,
  bytes INTEGER NOT NULL) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS output_owners_by_size ON output_owners(bytes);

CREATE TABLE IF NOT EXISTS output_total (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  bytes INTEGER NOT NULL);

INSERT OR IGNORE INTO output_total (id, bytes) VALUES (1, 0);

CREATE TABLE IF NOT EXISTS removed_outputs (
  handle TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  removed_at INTEGER NOT NULL) WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS output_piece_added AFTER INSERT ON output_pieces BEGIN
  INSERT INTO output_sizes (handle, owner, bytes)
    SELECT NEW.handle, owner, length(NEW.content) FROM outputs WHERE handle = NEW.handle
    ON CONFLICT (handle) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER IF NOT EXISTS output_size_begun AFTER INSERT ON output_sizes BEGIN
  INSERT INTO output_owners (owner, bytes) VALUES (NEW.owner, NEW.bytes)
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
  UPDATE output_total SET bytes = bytes + NEW.bytes;
END;

CREATE TRIGGER IF NOT EXISTS output_size_grown AFTER UPDATE OF bytes ON output_sizes BEGIN
  UPDATE output_owners SET bytes = bytes + NEW.bytes - OLD.bytes WHERE owner = NEW.owner;
  UPDATE output_total SET bytes = bytes + NEW.bytes - OLD.bytes;
END;

CREATE TRIGGER IF NOT EXISTS output_size_removed AFTER DELETE ON output_sizes BEGIN
  UPDATE output_owners SET bytes = bytes - OLD.bytes WHERE owner = OLD.owner;
  DELETE FROM output_owners WHERE owner = OLD.owner AND bytes <= 0;
  UPDATE output_total SET bytes = bytes - OLD.bytes;
END;

-- Compacted beginnings of conversations, by the hash of the turns that each replaces.
CREATE TABLE IF NOT EXISTS compactions (
  owner TEXT NOT NULL,
  first_sha256 TEXT NOT NULL,
  turns INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  items TEXT NOT NULL,
  mode TEXT NOT NULL,
  tokens_before INTEGER NOT NULL,
  tokens_after INTEGER NOT NULL,
  handle TEXT,
  bytes INTEGER NOT NULL,
  keep_days INTEGER NOT NULL,
  created_at TEXT NOT NULL DEFAULT (datetime('now')),
  last_used INTEGER NOT NULL,
  PRIMARY KEY (owner, first_sha256, turns, sha256));

-- The session of a compaction, and how much was dropped, by kind: `turns 4`, a line each.
CREATE TABLE IF NOT EXISTS compaction_sessions (
  owner TEXT NOT NULL,
  first_sha256 TEXT NOT NULL,
  turns INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  session TEXT NOT NULL,
  dropped TEXT NOT NULL,
  PRIMARY KEY (owner, first_sha256, turns, sha256),
  FOREIGN KEY (owner, first_sha256, turns, sha256) REFERENCES compactions(owner, first_sha256, turns, sha256)
    ON DELETE CASCADE) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS compaction_sessions_by_session ON compaction_sessions(session);

-- Supervised runs and their events. A run that is not over names the process that supervises it. If that process is dead, the
-- next start marks the run. AUTOINCREMENT: a reader that goes on from an event never misses one.
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'retry-queued', 'succeeded', 'released', 'failed')),
  reason TEXT,
  agent TEXT NOT NULL,
  command TEXT NOT NULL,
  folder TEXT NOT NULL,
  artifact TEXT NOT NULL,
  template TEXT,
  attempt INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  process INTEGER,
  session TEXT,
  model TEXT,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  largest_call_tokens INTEGER,
  limit_tokens INTEGER,
  context_exhaustion_risk INTEGER NOT NULL CHECK (context_exhaustion_risk IN (0, 1)),
  cost_nanodollars INTEGER,
  verdict TEXT,
  evidence TEXT NOT NULL,
  findings INTEGER,
  started_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  updated_at TEXT NOT NULL,
  ended_at TEXT);

CREATE INDEX IF NOT EXISTS runs_by_start ON runs(started_at);

CREATE TABLE IF NOT EXISTS run_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  message TEXT NOT NULL);

CREATE INDEX IF NOT EXISTS run_events_by_run ON run_events(run_id, id);

-- What a run needs to continue after its supervisor was killed: how it was asked for, how long it has taken, and what its agent's
-- session has used. At most one row per row of `runs`.
CREATE TABLE IF NOT EXISTS run_tasks (
  run_id TEXT PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  name TEXT,
  asked TEXT,
  seconds INTEGER NOT NULL,
  session_input_tokens INTEGER NOT NULL,
  session_output_tokens INTEGER NOT NULL);

-- Budgets: the amounts spent and held in each window, and the entry of every call that a budget counts. An entry is held (`spent`
-- is NULL) from before its call until the row of that call is written; both change in one transaction. `forgotten` is the sum of
-- deleted entries.
CREATE TABLE IF NOT EXISTS budgets (
  scope TEXT NOT NULL,
  subject TEXT NOT NULL,
  window TEXT NOT NULL,
  unit TEXT NOT NULL,
  spent INTEGER NOT NULL DEFAULT 0,
  held INTEGER NOT NULL DEFAULT 0,
  forgotten INTEGER NOT NULL DEFAULT 0,
  extra INTEGER NOT NULL DEFAULT 0,
  is_closed INTEGER NOT NULL DEFAULT 0,
  warned_percent INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, subject, window, unit)) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS budget_entries (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  scope TEXT NOT NULL,
  unit TEXT NOT NULL,
  subject TEXT NOT NULL,
  window TEXT NOT NULL,
  owner TEXT NOT NULL,
  held INTEGER NOT NULL,
  spent INTEGER,
  PRIMARY KEY (request_id, call, scope, unit)) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS budget_entries_held ON budget_entries(owner) WHERE spent IS NULL;

-- Leases: the part of a budget in which one process holds calls without a transaction for each. A lease counts as held. `in_use`
-- is the part that calls under way held when the lease was last written. The next start deletes the lease of a dead process,
-- after it has charged the calls on that process's slate.
CREATE TABLE IF NOT EXISTS budget_leases (
  scope TEXT NOT NULL,
  subject TEXT NOT NULL,
  window TEXT NOT NULL,
  unit TEXT NOT NULL,
  owner TEXT NOT NULL,
  amount INTEGER NOT NULL,
  in_use INTEGER NOT NULL,
  PRIMARY KEY (scope, subject, window, unit, owner)) WITHOUT ROWID;

-- The gateway's own keys. Only hashes of their secrets are kept, in a table of their own: during a rotation a key has two. `models`
-- are patterns, one a line, or empty if all are allowed. Moments are seconds since 1970.
CREATE TABLE IF NOT EXISTS keys (
  name TEXT NOT NULL PRIMARY KEY,
  models TEXT NOT NULL,
  budget_unit TEXT CHECK (budget_unit = 'tokens' OR budget_unit = 'nano_usd'),
  budget_period TEXT CHECK (budget_period = 'day' OR budget_period = 'month' OR budget_period = 'ever'),
  budget_limit INTEGER,
  requests_per_minute INTEGER,
  tokens_per_minute INTEGER,
  parallel INTEGER,
  ends_at INTEGER,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER,
  CHECK ((budget_unit IS NULL) = (budget_limit IS NULL) AND (budget_period IS NULL) = (budget_limit IS NULL))
  ) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS key_secrets (
  sha256 TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  ends_at INTEGER) WITHOUT ROWID;
