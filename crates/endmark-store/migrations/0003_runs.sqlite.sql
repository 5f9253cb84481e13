-- Supervised runs that the shared database does not have as they are now, and their events that it does not have. Triggers that only
-- a journal has fill these tables. The file can be run any number of times.

-- Each change of a run gives it a new number.
CREATE TABLE IF NOT EXISTS journal_runs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL UNIQUE);

CREATE TABLE IF NOT EXISTS journal_run_events (
  number INTEGER PRIMARY KEY);
