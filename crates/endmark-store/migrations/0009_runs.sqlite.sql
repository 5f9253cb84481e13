-- Supervised runs, and what happened to them. A run that is not over names the process that supervises it; one whose process is no
-- longer alive is marked at the next start. AUTOINCREMENT: whoever reads on from an event never misses one.

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
