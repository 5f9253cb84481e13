-- The journal of one instance of several that share a PostgreSQL database. These tables stay empty in a store of its own. The file
-- can be run any number of times.

-- Which instance this is. `token` is what the database knows it by; `pending` is its next token, which the database may have
-- accepted without the instance hearing of it. `keys_version` numbers the snapshot in `keys` and `key_secrets`.
CREATE TABLE IF NOT EXISTS journal (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  instance TEXT NOT NULL,
  token TEXT NOT NULL,
  pending TEXT NOT NULL,
  keys_version INTEGER NOT NULL DEFAULT -1);

-- The part of each budget that this instance may spend, as the database granted it, and what other instances spent.
CREATE TABLE IF NOT EXISTS journal_shares (
  scope TEXT NOT NULL,
  subject TEXT NOT NULL,
  window TEXT NOT NULL,
  unit TEXT NOT NULL,
  granted INTEGER NOT NULL,
  spent_elsewhere INTEGER NOT NULL,
  PRIMARY KEY (scope, subject, window, unit)) WITHOUT ROWID;

-- What the database has not confirmed yet: rows of calls, and budgets whose costs changed. Triggers that only a journal has fill
-- them.
CREATE TABLE IF NOT EXISTS journal_rows (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL);

CREATE TABLE IF NOT EXISTS journal_changes (
  scope TEXT NOT NULL,
  subject TEXT NOT NULL,
  window TEXT NOT NULL,
  unit TEXT NOT NULL,
  PRIMARY KEY (scope, subject, window, unit)) WITHOUT ROWID;

-- Kept outputs and summaries that the database does not have yet, filled by the journal's triggers, and outputs of other instances
-- that were used here. `next_piece` is the first piece that is not uploaded yet.
CREATE TABLE IF NOT EXISTS journal_outputs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  handle TEXT NOT NULL UNIQUE,
  next_piece INTEGER NOT NULL DEFAULT 0);

CREATE TABLE IF NOT EXISTS journal_compactions (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  owner TEXT NOT NULL,
  first_sha256 TEXT NOT NULL,
  turns INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  UNIQUE (owner, first_sha256, turns, sha256));
