//! Tests of whole audits, and of results that are cut at every byte.

mod audit;
mod every_cut;
mod headlines;
mod json_lines;
mod round_trip;
mod rounds;
