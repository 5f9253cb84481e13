-- Full values of outputs that were shortened: in pieces, compressed one by one, so that a part can be read without the rest.

CREATE TABLE IF NOT EXISTS outputs (
  handle TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  format TEXT,
  bytes INTEGER,
  lines INTEGER,
  keep_days INTEGER NOT NULL,
  created_at TEXT NOT NULL DEFAULT (datetime('now')),
  last_used INTEGER NOT NULL);

CREATE INDEX IF NOT EXISTS outputs_by_use ON outputs(last_used);

CREATE TABLE IF NOT EXISTS output_pieces (
  handle TEXT NOT NULL REFERENCES outputs(handle) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  first_byte INTEGER NOT NULL,
  first_line INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (handle, ordinal));
