-- Supervised runs of all instances. The file can be run any number of times. It uses no triggers, sequences, foreign keys or functions
-- of its own.

-- Runs as their machines last reported them. `revision` grows with each change of a run. `reported_at` is the time of the last report or
-- sign of life, in seconds since 1970 by the database's clock. The other times are of the machine's clock, in UTC.
CREATE TABLE IF NOT EXISTS em_runs (
  instance text NOT NULL,
  id text NOT NULL,
  revision bigint NOT NULL,
  machine text NOT NULL,
  reported_at bigint NOT NULL,
  is_supervised boolean NOT NULL,
  state text NOT NULL,
  reason text,
  agent text NOT NULL,
  command text NOT NULL,
  folder text NOT NULL,
  artifact text NOT NULL,
  template text,
  attempt bigint NOT NULL,
  max_attempts bigint NOT NULL,
  process bigint,
  session text,
  model text,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  largest_call_tokens bigint,
  limit_tokens bigint,
  context_exhaustion_risk boolean NOT NULL,
  cost_nanodollars bigint,
  verdict text,
  evidence text NOT NULL,
  findings bigint,
  name text,
  started_at text NOT NULL,
  updated_at text NOT NULL,
  ended_at text,
  PRIMARY KEY (instance, id));

CREATE INDEX IF NOT EXISTS em_runs_by_start ON em_runs (started_at);
CREATE INDEX IF NOT EXISTS em_runs_by_report ON em_runs (reported_at);

-- Their events, with the numbers that they have in the journal.
CREATE TABLE IF NOT EXISTS em_run_events (
  instance text NOT NULL,
  run_id text NOT NULL,
  number bigint NOT NULL,
  at text NOT NULL,
  name text NOT NULL,
  attempt bigint NOT NULL,
  state text NOT NULL,
  reason text,
  message text NOT NULL,
  PRIMARY KEY (instance, run_id, number));
