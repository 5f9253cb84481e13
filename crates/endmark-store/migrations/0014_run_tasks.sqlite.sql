-- What it takes to go on with a supervised run whose supervisor was killed: how it was asked for, how long it has taken, and what its
-- agent's session has used. One row per row of `runs` at most.

CREATE TABLE IF NOT EXISTS run_tasks (
  run_id TEXT PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  name TEXT,
  asked TEXT,
  seconds INTEGER NOT NULL,
  session_input_tokens INTEGER NOT NULL,
  session_output_tokens INTEGER NOT NULL);
