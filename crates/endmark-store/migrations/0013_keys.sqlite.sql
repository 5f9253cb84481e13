-- Keys that the gateway lets clients in with (CX-7). Of their secrets only hashes are kept, in a table of their own: while a key
-- is rotated, it has two. `models` are patterns, one a line, and empty where all are allowed; moments are seconds since 1970.

CREATE TABLE IF NOT EXISTS keys (
  name TEXT NOT NULL PRIMARY KEY,
  models TEXT NOT NULL,
  budget_unit TEXT CHECK (budget_unit = 'tokens' OR budget_unit = 'nano_usd'),
  budget_period TEXT CHECK (budget_period = 'day' OR budget_period = 'month' OR budget_period = 'ever'),
  budget_limit INTEGER,
  ends_at INTEGER,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER,
  CHECK ((budget_unit IS NULL) = (budget_limit IS NULL) AND (budget_period IS NULL) = (budget_limit IS NULL))
  ) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS key_secrets (
  sha256 TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  ends_at INTEGER) WITHOUT ROWID;
