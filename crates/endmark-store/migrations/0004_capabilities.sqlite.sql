-- What an upstream was found to be able to do with a model.

CREATE TABLE IF NOT EXISTS capabilities (
  upstream TEXT NOT NULL,
  model TEXT NOT NULL,
  prefill TEXT NOT NULL,
  learned_at TEXT NOT NULL DEFAULT (datetime('now')),
  PRIMARY KEY (upstream, model));
