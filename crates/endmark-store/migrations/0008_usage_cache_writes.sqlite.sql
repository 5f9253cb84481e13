-- What a call wrote to its provider's cache, where the provider reports it: it costs more than other tokens, and more
-- again where it is kept for an hour (`tokens_1h`, a part of `tokens`). One row per row of `usage` at most.

CREATE TABLE IF NOT EXISTS usage_cache_writes (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  tokens_1h INTEGER NOT NULL,
  PRIMARY KEY (request_id, call)) WITHOUT ROWID;
