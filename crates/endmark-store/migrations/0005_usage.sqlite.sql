-- One row per upstream call, written when the call is over, or at the next start if the process was killed
-- meanwhile. The key is what keeps a call from being counted twice. Times are UTC; counts are as the provider reports
-- them, and NULL where it reports none.

CREATE TABLE IF NOT EXISTS usage (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  purpose TEXT NOT NULL CHECK (purpose IN ('reply', 'retry', 'fallback', 'resume', 'correction')),
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

CREATE INDEX IF NOT EXISTS usage_by_time ON usage(started_at);
