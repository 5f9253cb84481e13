-- The ledger knows one more purpose, `summary`: a model was asked what happened in a part of a conversation. Which purposes there
-- are is the program's to say: a list here had the whole table written anew for each.

CREATE TABLE IF NOT EXISTS usage_for_any_purpose (
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
  PRIMARY KEY (request_id, call)) WITHOUT ROWID;

INSERT OR IGNORE INTO usage_for_any_purpose SELECT
  request_id, call, purpose, session, credential, upstream, format, model, answered_model, streamed, mode, started_at,
  ended_at, http_status, ending, stop, verdict, cut_kind, prompt_tokens, output_tokens, cached_tokens, reasoning_tokens,
  total_tokens, sent_bytes, received_bytes, first_byte_ms, total_ms FROM usage;

DROP TABLE usage;

ALTER TABLE usage_for_any_purpose RENAME TO usage;

CREATE INDEX IF NOT EXISTS usage_by_time ON usage(started_at);
