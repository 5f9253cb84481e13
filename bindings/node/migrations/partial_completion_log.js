#!/usr/bin/env node
"use strict";
// Creates the table `partial_completion_log`, and can run more than once. `node partial_completion_log.js FILE` runs it on a SQLite file,
// and `up(database)` on an open database of better-sqlite3 or node:sqlite. `sql` is for any other migration tool.
const { LOG_TABLE, Log } = require("endmark");

exports.sql = LOG_TABLE;
exports.up = (database) => database.exec(LOG_TABLE);

if (require.main === module) {
  const path = process.argv[2];
  if (!path) {
    console.error("usage: node partial_completion_log.js FILE");
    process.exit(2);
  }
  new Log(path).close();
  console.log(`${path} has the table partial_completion_log`);
}
