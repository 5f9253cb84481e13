-- How much room kept outputs take: the bytes of their compressed pieces, by output, by owner and of all. Triggers keep the sums,
-- whichever program writes or removes a piece. `removed_outputs` has what was removed to stay within the room.

CREATE TABLE IF NOT EXISTS output_sizes (
  handle TEXT NOT NULL PRIMARY KEY REFERENCES outputs(handle) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  bytes INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS output_owners (
  owner TEXT NOT NULL PRIMARY KEY,
  bytes INTEGER NOT NULL) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS output_owners_by_size ON output_owners(bytes);

CREATE TABLE IF NOT EXISTS output_total (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  bytes INTEGER NOT NULL);

CREATE TABLE IF NOT EXISTS removed_outputs (
  handle TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  removed_at INTEGER NOT NULL) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS outputs_by_owner ON outputs(owner, last_used, handle);

INSERT OR IGNORE INTO output_total (id, bytes) VALUES (1, 0);

CREATE TRIGGER IF NOT EXISTS output_piece_added AFTER INSERT ON output_pieces BEGIN
  INSERT INTO output_sizes (handle, owner, bytes)
    SELECT NEW.handle, owner, length(NEW.content) FROM outputs WHERE handle = NEW.handle
    ON CONFLICT (handle) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER IF NOT EXISTS output_size_begun AFTER INSERT ON output_sizes BEGIN
  INSERT INTO output_owners (owner, bytes) VALUES (NEW.owner, NEW.bytes)
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
  UPDATE output_total SET bytes = bytes + NEW.bytes;
END;

CREATE TRIGGER IF NOT EXISTS output_size_grown AFTER UPDATE OF bytes ON output_sizes BEGIN
  UPDATE output_owners SET bytes = bytes + NEW.bytes - OLD.bytes WHERE owner = NEW.owner;
  UPDATE output_total SET bytes = bytes + NEW.bytes - OLD.bytes;
END;

CREATE TRIGGER IF NOT EXISTS output_size_removed AFTER DELETE ON output_sizes BEGIN
  UPDATE output_owners SET bytes = bytes - OLD.bytes WHERE owner = OLD.owner;
  DELETE FROM output_owners WHERE owner = OLD.owner AND bytes <= 0;
  UPDATE output_total SET bytes = bytes - OLD.bytes;
END;

INSERT OR IGNORE INTO output_sizes (handle, owner, bytes)
  SELECT handle, owner, sum(length(content)) FROM output_pieces JOIN outputs USING (handle) GROUP BY handle;
