-- In which session a conversation was condensed, and how much of it was dropped, by kind: `turns 4`, a line each. In which session
-- an output was shortened first. And the sessions of calls that came with one of the gateway's own keys, as supervised runs have.

CREATE TABLE IF NOT EXISTS compaction_sessions (
  owner TEXT NOT NULL,
  first_sha256 TEXT NOT NULL,
  turns INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  session TEXT NOT NULL,
  dropped TEXT NOT NULL,
  PRIMARY KEY (owner, first_sha256, turns, sha256),
  FOREIGN KEY (owner, first_sha256, turns, sha256) REFERENCES compactions(owner, first_sha256, turns, sha256)
    ON DELETE CASCADE) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS compaction_sessions_by_session ON compaction_sessions(session);

CREATE TABLE IF NOT EXISTS session_outputs (
  handle TEXT NOT NULL PRIMARY KEY REFERENCES outputs(handle) ON DELETE CASCADE,
  session TEXT NOT NULL) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS session_outputs_by_session ON session_outputs(session);

CREATE INDEX IF NOT EXISTS usage_of_keys ON usage(session, credential) WHERE credential >= 'key:' AND credential < 'key;';
