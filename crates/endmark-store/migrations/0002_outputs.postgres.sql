-- Kept outputs and summaries of conversations that several instances share. The file can be run any number of times. It uses no
-- triggers, sequences, foreign keys or functions of its own.

-- Full values of shortened outputs. `bytes` is NULL until all pieces are there. `expires_at` is in seconds since 1970; every use
-- moves it.
CREATE TABLE IF NOT EXISTS em_outputs (
  handle text PRIMARY KEY,
  owner text NOT NULL,
  format text NOT NULL,
  bytes bigint,
  lines bigint,
  keep_days integer NOT NULL,
  expires_at bigint NOT NULL);

CREATE INDEX IF NOT EXISTS em_outputs_by_expiry ON em_outputs (expires_at);

CREATE TABLE IF NOT EXISTS em_output_pieces (
  handle text NOT NULL,
  ordinal bigint NOT NULL,
  first_byte bigint NOT NULL,
  first_line bigint NOT NULL,
  bytes bigint NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (handle, ordinal));

-- Compacted beginnings of conversations, by the hash of the turns that each replaces.
CREATE TABLE IF NOT EXISTS em_compactions (
  owner text NOT NULL,
  first_sha256 text NOT NULL,
  turns bigint NOT NULL,
  sha256 text NOT NULL,
  items text NOT NULL,
  mode text NOT NULL,
  tokens_before bigint NOT NULL,
  tokens_after bigint NOT NULL,
  handle text,
  bytes bigint NOT NULL,
  session text NOT NULL,
  dropped text NOT NULL,
  keep_days bigint NOT NULL,
  expires_at bigint NOT NULL,
  PRIMARY KEY (owner, first_sha256, turns, sha256));

CREATE INDEX IF NOT EXISTS em_compactions_by_expiry ON em_compactions (expires_at);
