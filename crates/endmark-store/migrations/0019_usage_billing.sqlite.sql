-- Counts that have a price of their own, and the tier that a call was served in. At most one row per row of `usage`, and none for
-- most calls: sums count such a call like any other, and a report adds the difference in price.

CREATE TABLE IF NOT EXISTS usage_billing (
  request_id TEXT NOT NULL,
  call INTEGER NOT NULL,
  tier TEXT,
  prompt_audio INTEGER NOT NULL,
  cached_audio INTEGER NOT NULL,
  completion_audio INTEGER NOT NULL,
  web_searches INTEGER NOT NULL,
  PRIMARY KEY (request_id, call)) WITHOUT ROWID;
