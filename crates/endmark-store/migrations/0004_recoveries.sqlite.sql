-- Recoveries that the shared database does not have yet. A trigger that only a journal has fills this table. The file can be run any
-- number of times.
CREATE TABLE IF NOT EXISTS journal_recoveries (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  log_id INTEGER NOT NULL);
