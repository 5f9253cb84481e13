-- The same table, with the check of `purpose` written out: for a list of more than two words SQLite builds a table in
-- memory at each row, which took a third of the time of writing it.

CREATE TABLE IF NOT EXISTS usage_written_out (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  purpose TEXT NOT NULL CHECK (
    purpose = 'reply' OR purpose = 'retry' OR purpose = 'fallback' OR purpose = 'resume' OR purpose = 'correction'),
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

INSERT OR IGNORE INTO usage_written_out SELECT
  request_id, call, purpose, session, credential, upstream, format, model, answered_model, streamed, mode, started_at,
  ended_at, http_status, ending, stop, verdict, cut_kind, prompt_tokens, output_tokens, cached_tokens, reasoning_tokens,
  total_tokens, sent_bytes, received_bytes, first_byte_ms, total_ms FROM usage;

DROP TABLE usage;

ALTER TABLE usage_written_out RENAME TO usage;

CREATE INDEX IF NOT EXISTS usage_by_time ON usage(started_at);
