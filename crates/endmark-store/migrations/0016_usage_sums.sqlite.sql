-- Sums of calls by day and hour, so that nobody has to read a million calls for them. A call that stands in no sum yet stands in
-- `usage_unsummed`: a trigger sees to that, whichever program writes or forgets the call. `usage_sums` has each call in the row of
-- its day (`grain` 10, the characters of `started_at` that make up `period`) and in that of its hour (`grain` 13); by nothing else,
-- by its session, and by its client's key. Which calls one row of `usage_classes` stands for is the program's to say.

CREATE TABLE IF NOT EXISTS usage_unsummed (
  started_at TEXT NOT NULL,
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  PRIMARY KEY (started_at, request_id, call)) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS usage_classes (
  id INTEGER PRIMARY KEY,
  upstream TEXT NOT NULL,
  purpose TEXT NOT NULL,
  model TEXT NOT NULL,
  answered_model TEXT NOT NULL,
  kinds INTEGER NOT NULL,
  above_tokens INTEGER NOT NULL,
  from_minute INTEGER NOT NULL,
  UNIQUE (upstream, purpose, model, answered_model, kinds, above_tokens, from_minute));

CREATE TABLE IF NOT EXISTS usage_sums (
  grain INTEGER NOT NULL,
  dimension TEXT NOT NULL,
  period TEXT NOT NULL,
  key TEXT NOT NULL,
  class INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  judged INTEGER NOT NULL,
  cut INTEGER NOT NULL,
  without_reply INTEGER NOT NULL,
  interrupted INTEGER NOT NULL,
  unreported INTEGER NOT NULL,
  reported_prompt INTEGER NOT NULL,
  reported_output INTEGER NOT NULL,
  prompt INTEGER NOT NULL,
  plain_prompt INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL,
  completion INTEGER NOT NULL,
  plain_completion INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  PRIMARY KEY (grain, dimension, period, key, class)) WITHOUT ROWID;

-- Those that are there are summed little by little.
DELETE FROM usage_sums;
INSERT OR IGNORE INTO usage_unsummed SELECT started_at, request_id, call FROM usage ORDER BY started_at, request_id, call;

CREATE TRIGGER IF NOT EXISTS usage_written AFTER INSERT ON usage BEGIN
  INSERT OR IGNORE INTO usage_unsummed VALUES (NEW.started_at, NEW.request_id, NEW.call);
END;

-- A call that stands in sums cannot be taken out of them here: its hour is, and the rest of the hour is summed anew.
CREATE TRIGGER IF NOT EXISTS usage_forgotten BEFORE DELETE ON usage
WHEN NOT EXISTS (SELECT 1 FROM usage_unsummed WHERE started_at = OLD.started_at AND request_id = OLD.request_id AND call = OLD.call)
BEGIN
  UPDATE usage_sums SET calls = usage_sums.calls - h.calls, requests = usage_sums.requests - h.requests,
    judged = usage_sums.judged - h.judged, cut = usage_sums.cut - h.cut, without_reply = usage_sums.without_reply - h.without_reply,
    interrupted = usage_sums.interrupted - h.interrupted, unreported = usage_sums.unreported - h.unreported,
    reported_prompt = usage_sums.reported_prompt - h.reported_prompt,
    reported_output = usage_sums.reported_output - h.reported_output, prompt = usage_sums.prompt - h.prompt,
    plain_prompt = usage_sums.plain_prompt - h.plain_prompt, cached = usage_sums.cached - h.cached,
    cache_write = usage_sums.cache_write - h.cache_write, cache_write_1h = usage_sums.cache_write_1h - h.cache_write_1h,
    completion = usage_sums.completion - h.completion, plain_completion = usage_sums.plain_completion - h.plain_completion,
    reasoning = usage_sums.reasoning - h.reasoning, estimated = usage_sums.estimated - h.estimated
  FROM usage_sums AS h
  WHERE h.grain = 13 AND h.dimension IN ('', 'session', 'key') AND h.period = substr(OLD.started_at, 1, 13)
    AND usage_sums.grain = 10 AND usage_sums.period = substr(OLD.started_at, 1, 10)
    AND usage_sums.dimension = h.dimension AND usage_sums.key = h.key AND usage_sums.class = h.class;
  DELETE FROM usage_sums WHERE grain = 10 AND dimension IN ('', 'session', 'key') AND period = substr(OLD.started_at, 1, 10) AND calls = 0;
  DELETE FROM usage_sums WHERE grain = 13 AND dimension IN ('', 'session', 'key') AND period = substr(OLD.started_at, 1, 13);
  INSERT OR IGNORE INTO usage_unsummed SELECT started_at, request_id, call FROM usage
    WHERE started_at >= substr(OLD.started_at, 1, 13) AND started_at < substr(OLD.started_at, 1, 13) || ';';
END;

CREATE TRIGGER IF NOT EXISTS usage_forgotten_unsummed AFTER DELETE ON usage BEGIN
  DELETE FROM usage_unsummed WHERE started_at = OLD.started_at AND request_id = OLD.request_id AND call = OLD.call;
END;

-- Cut replies with all that is said of them in sums, and what became of them.
CREATE INDEX IF NOT EXISTS usage_cut ON usage(started_at, request_id, call, verdict, purpose, upstream, model, cut_kind, prompt_tokens,
  output_tokens, sent_bytes, received_bytes) WHERE verdict = 'cut';
CREATE INDEX IF NOT EXISTS recoveries_outcomes ON recoveries(request_id, outcome);
DROP INDEX IF EXISTS recoveries_by_request;
