//! The envelope in which commands answer: `ok`, `data`, `error`, `warnings`, `meta` (EN-1).
