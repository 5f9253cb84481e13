#!/usr/bin/env node
"use strict";
// Makes the table `partial_completion_log`; it can run twice. `node partial_completion_log.js FILE` runs it on a SQLite file, and
// `up(database)` on an open one of better-sqlite3 or node:sqlite. `sql` is for any other runner of migrations.
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
