-- Budgets (CX-7): what is spent and held in each window, and the entry of every call that is counted in one. An entry is
-- held (`spent` is NULL) from before its call is made until the row of that call is written, and both change in one
-- transaction. `forgotten` is what the entries came to that are not kept any more.

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

-- The ledger knows one more purpose, `closing`: the one call that a used-up session is still given.

CREATE TABLE IF NOT EXISTS usage_with_closing (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  purpose TEXT NOT NULL CHECK (
    purpose = 'reply' OR purpose = 'retry' OR purpose = 'fallback' OR purpose = 'resume' OR purpose = 'correction'
    OR purpose = 'closing'),
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
  PRIMARY KEY (request_id, call)) WITHOUT ROWID;

INSERT OR IGNORE INTO usage_with_closing SELECT
  request_id, call, purpose, session, credential, upstream, format, model, answered_model, streamed, mode, started_at,
  ended_at, http_status, ending, stop, verdict, cut_kind, prompt_tokens, output_tokens, cached_tokens, reasoning_tokens,
  total_tokens, sent_bytes, received_bytes, first_byte_ms, total_ms FROM usage;

DROP TABLE usage;

ALTER TABLE usage_with_closing RENAME TO usage;

CREATE INDEX IF NOT EXISTS usage_by_time ON usage(started_at);
