-- Recoveries of cut replies, without their texts. The file can be run any number of times. It uses no triggers, sequences, foreign
-- keys or functions of its own.

-- `id` is the number of the row in the journal of its instance, which keeps the `pieces` of the reply. An instance can use a number again
-- after its rows were deleted. `finished_at` is of the machine's clock, in UTC.
CREATE TABLE IF NOT EXISTS em_recoveries (
  request_id text NOT NULL,
  instance text NOT NULL,
  id bigint NOT NULL,
  machine text NOT NULL,
  finished_at text NOT NULL,
  task_id text NOT NULL,
  turn_number bigint NOT NULL,
  truncation_index bigint,
  initial_chunk_length bigint,
  resume_attempts bigint NOT NULL,
  final_status text NOT NULL,
  slot text NOT NULL,
  model text NOT NULL,
  provider text NOT NULL,
  cut_kind text NOT NULL,
  outcome text NOT NULL,
  seam_style text,
  extra_prompt_tokens bigint NOT NULL,
  extra_output_tokens bigint NOT NULL,
  reason text NOT NULL,
  pieces bigint NOT NULL,
  PRIMARY KEY (request_id, instance, id));

CREATE INDEX IF NOT EXISTS em_recoveries_by_time ON em_recoveries (finished_at, instance, id);

-- Cut replies, and the calls of a request and of a session. Ids of requests grow with time.
CREATE INDEX IF NOT EXISTS em_usage_cut ON em_usage (started_at, request_id) WHERE verdict = 'cut';
CREATE INDEX IF NOT EXISTS em_usage_by_request ON em_usage (request_id);
CREATE INDEX IF NOT EXISTS em_usage_by_session ON em_usage (session, started_at);
