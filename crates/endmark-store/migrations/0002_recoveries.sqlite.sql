-- What else is known of a cut reply, next to its row in partial_completion_log. A table of its own, since
-- SQLite's ALTER TABLE ADD COLUMN fails when it is run a second time.

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

CREATE INDEX IF NOT EXISTS recoveries_by_request ON recoveries(request_id);

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
