-- The tables that several instances share. The file can be run any number of times. It uses no triggers, sequences, foreign keys
-- or functions of its own.

CREATE TABLE IF NOT EXISTS em_meta (name text PRIMARY KEY, value bigint NOT NULL);

-- Instances, each with its newest token. An instance whose `expires` is past is silent: what it may still spend stays
-- counted until it reports, or until somebody forfeits it.
CREATE TABLE IF NOT EXISTS em_instances (
  id text PRIMARY KEY,
  token text NOT NULL,
  is_forfeited boolean NOT NULL DEFAULT false,
  expires timestamptz NOT NULL);

-- Budgets over all instances. `extra` was added to the configured limit.
-- `committed` is the sum over shares of `granted`, or of `spent` where that is more.
CREATE TABLE IF NOT EXISTS em_budgets (
  scope text NOT NULL,
  subject text NOT NULL,
  span text NOT NULL,
  unit text NOT NULL,
  spent bigint NOT NULL DEFAULT 0,
  committed bigint NOT NULL DEFAULT 0,
  is_tight boolean NOT NULL DEFAULT false,
  extra bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, subject, span, unit));

CREATE TABLE IF NOT EXISTS em_shares (
  scope text NOT NULL,
  subject text NOT NULL,
  span text NOT NULL,
  unit text NOT NULL,
  instance text NOT NULL,
  granted bigint NOT NULL,
  spent bigint NOT NULL,
  PRIMARY KEY (scope, subject, span, unit, instance));

-- One row for each upstream call. The key has the time, so that the table can be partitioned by it.
CREATE TABLE IF NOT EXISTS em_usage (
  started_at timestamptz NOT NULL,
  request_id text NOT NULL,
  call integer NOT NULL,
  instance text NOT NULL,
  purpose text NOT NULL,
  session text NOT NULL,
  credential text,
  upstream text NOT NULL,
  format text NOT NULL,
  model text NOT NULL,
  answered_model text,
  streamed boolean NOT NULL,
  mode text NOT NULL,
  ended_at timestamptz,
  http_status integer,
  ending text NOT NULL,
  stop text,
  verdict text,
  cut_kind text,
  prompt_tokens bigint,
  output_tokens bigint,
  cached_tokens bigint,
  reasoning_tokens bigint,
  total_tokens bigint,
  cache_written_tokens bigint,
  estimated_prompt bigint,
  estimated_output bigint,
  sent_bytes bigint NOT NULL,
  received_bytes bigint,
  first_byte_ms double precision,
  total_ms double precision,
  PRIMARY KEY (started_at, request_id, call));

-- The gateway's own keys, with hashes of their secrets alone. `em_meta` has `key_version`, which every change raises.
CREATE TABLE IF NOT EXISTS em_keys (
  name text PRIMARY KEY,
  models text NOT NULL,
  budget_unit text,
  budget_period text,
  budget_limit bigint,
  requests_per_minute bigint,
  tokens_per_minute bigint,
  parallel bigint,
  ends_at bigint,
  created_at bigint NOT NULL,
  revoked_at bigint);

CREATE TABLE IF NOT EXISTS em_key_secrets (sha256 text PRIMARY KEY, name text NOT NULL, ends_at bigint);

INSERT INTO em_meta (name, value) VALUES ('key_version', 0), ('schema', 1) ON CONFLICT DO NOTHING;
