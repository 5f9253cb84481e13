//! Tests with results cut at every byte, and with realistic audits.

mod audit;
mod every_cut;
mod headed;
mod json_lines;
mod round_trip;
mod rounds;
