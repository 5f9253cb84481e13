-- What the beginnings of conversations were condensed to, by the hash of the turns that each stands for; and under which
-- handle a value was kept before, so that it is kept once and always shown alike.

CREATE TABLE IF NOT EXISTS compactions (
  owner TEXT NOT NULL,
  first_sha256 TEXT NOT NULL,
  turns INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  items TEXT NOT NULL,
  mode TEXT NOT NULL,
  tokens_before INTEGER NOT NULL,
  tokens_after INTEGER NOT NULL,
  handle TEXT,
  bytes INTEGER NOT NULL,
  keep_days INTEGER NOT NULL,
  created_at TEXT NOT NULL DEFAULT (datetime('now')),
  last_used INTEGER NOT NULL,
  PRIMARY KEY (owner, first_sha256, turns, sha256));

CREATE TABLE IF NOT EXISTS output_names (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  handle TEXT NOT NULL REFERENCES outputs(handle) ON DELETE CASCADE,
  PRIMARY KEY (owner, name));
