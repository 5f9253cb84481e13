-- Counts that have a price of their own, sums of calls, and closing calls. The file can be run any number of times. It uses no triggers, sequences,
-- foreign keys or functions of its own.

-- `cache_written_1h_tokens` is a part of `cache_written_tokens`. The other counts are NULL unless one of them, or the tier, changes
-- the price of the call.
ALTER TABLE em_usage ADD COLUMN IF NOT EXISTS cache_written_1h_tokens bigint;
ALTER TABLE em_usage ADD COLUMN IF NOT EXISTS tier text;
ALTER TABLE em_usage ADD COLUMN IF NOT EXISTS prompt_audio_tokens bigint;
ALTER TABLE em_usage ADD COLUMN IF NOT EXISTS cached_audio_tokens bigint;
ALTER TABLE em_usage ADD COLUMN IF NOT EXISTS output_audio_tokens bigint;
ALTER TABLE em_usage ADD COLUMN IF NOT EXISTS web_searches bigint;

-- The request with the closing call of the session, if it had one.
ALTER TABLE em_budgets ADD COLUMN IF NOT EXISTS closed_by text NOT NULL DEFAULT '';

-- Calls whose price cannot be derived from sums of tokens. Most calls are not among them.
CREATE INDEX IF NOT EXISTS em_usage_billed_apart ON em_usage (started_at) WHERE web_searches IS NOT NULL;

-- Sums of calls by day (UTC), client's key and class. They contain exactly the calls that began before `summed_until` in `em_meta`, in
-- milliseconds since 1970.
CREATE TABLE IF NOT EXISTS em_usage_sums (
  day date NOT NULL,
  credential text NOT NULL,
  upstream text NOT NULL,
  purpose text NOT NULL,
  model text NOT NULL,
  answered_model text NOT NULL,
  kinds integer NOT NULL,
  above_tokens bigint NOT NULL,
  from_minute integer NOT NULL,
  calls bigint NOT NULL,
  requests bigint NOT NULL,
  judged bigint NOT NULL,
  cut bigint NOT NULL,
  without_reply bigint NOT NULL,
  interrupted bigint NOT NULL,
  unreported bigint NOT NULL,
  reported_prompt bigint NOT NULL,
  reported_output bigint NOT NULL,
  prompt bigint NOT NULL,
  plain_prompt bigint NOT NULL,
  cached bigint NOT NULL,
  cache_write bigint NOT NULL,
  cache_write_1h bigint NOT NULL,
  completion bigint NOT NULL,
  plain_completion bigint NOT NULL,
  reasoning bigint NOT NULL,
  estimated bigint NOT NULL,
  PRIMARY KEY (day, credential, upstream, purpose, model, answered_model, kinds, above_tokens, from_minute));

INSERT INTO em_meta (name, value) VALUES ('summed_until', 0) ON CONFLICT DO NOTHING;

-- Budgets whose window ends. Those that ended long ago are deleted.
CREATE INDEX IF NOT EXISTS em_budgets_by_span ON em_budgets (span) WHERE span <> 'ever';
