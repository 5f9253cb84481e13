-- How long the text of an answer was whose provider reported no tokens: they are estimated from it, and not from the bytes of its
-- frames, which are twenty times as many in a stream. One row per row of `usage` at most.

CREATE TABLE IF NOT EXISTS usage_texts (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  text_bytes INTEGER NOT NULL,
  PRIMARY KEY (request_id, call)) WITHOUT ROWID;
