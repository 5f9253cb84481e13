-- Leases: the part of a budget in which one process holds calls without a transaction for each. A lease counts as held.
-- `in_use` is the part that calls under way held when the lease was last written. The lease of a process that is dead is
-- deleted when the file is opened next, after the calls on its slate are charged.

CREATE TABLE IF NOT EXISTS budget_leases (
  scope TEXT NOT NULL,
  subject TEXT NOT NULL,
  window TEXT NOT NULL,
  unit TEXT NOT NULL,
  owner TEXT NOT NULL,
  amount INTEGER NOT NULL,
  in_use INTEGER NOT NULL,
  PRIMARY KEY (scope, subject, window, unit, owner)) WITHOUT ROWID;

-- Whoever writes a call sums it in the same transaction, with others, or notes that it is in no sum yet.
DROP TRIGGER IF EXISTS usage_written;
