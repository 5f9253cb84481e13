-- Cut replies: one row each, written when its outcome is known.
CREATE TABLE IF NOT EXISTS partial_completion_log (
  id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, turn_number INTEGER NOT NULL, truncation_index INTEGER,
  initial_chunk_length INTEGER, resume_attempts INTEGER DEFAULT 0,
  final_status TEXT NOT NULL CHECK(final_status IN ('RESOLVED','EXHAUSTED')),
  timestamp TEXT NOT NULL DEFAULT (datetime('now')));
