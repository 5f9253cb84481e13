-- Recoveries whose outcome is not known yet. Each names the process that owns it; one whose owner is no
-- longer alive becomes an EXHAUSTED row at the next start. AUTOINCREMENT: an id is never given twice.

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
