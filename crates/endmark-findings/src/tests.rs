//! Results that are cut at every byte, and audits as they really are.

mod audit;
mod every_cut;
mod headed;
mod json_lines;
mod round_trip;
mod rounds;
